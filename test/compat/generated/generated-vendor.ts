/** The parts that the generators of all vendors share: a request, the judgement of its answer, and hostile texts and values. */
import fc from 'fast-check'
import type { SignedBy } from '../../support/aws-signature.ts'

export interface GeneratedRequest {
  method: string
  /** With the query. */
  path: string
  body: string | FormData | URLSearchParams | undefined
  headers: Readonly<Record<string, string>>
}

export interface GeneratedAnswer {
  status: number
  headers: Headers
  text: string
}

export interface Keys {
  test: string
  ses: SignedBy
}

export interface GeneratedVendor {
  name: string
  requests: fc.Arbitrary<GeneratedRequest>
  authenticate(request: GeneratedRequest, url: string, keys: Keys): Record<string, string>
  /** Whether the request was refused; throws unless the refusal has the vendor's form. */
  isRefused(answer: GeneratedAnswer, request: GeneratedRequest): boolean
  /** The number of messages that an answer to an accepted request promises. */
  messagesOf(answer: GeneratedAnswer, request: GeneratedRequest): number
}

export const sender = 'Shop <orders@shop.test>'
export const html = '<p>Hi</p>'

/** Texts that break readers; with those of one vendor. */
export const textsWith = (...own: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof(fc.string({ maxLength: 40 }), fc.constantFrom('ann@one.example', 'A <a@shop.test>', '\u0000', '\ud800', '', '__proto__', ...own))

export const anythingOf = (texts: fc.Arbitrary<string>): fc.Arbitrary<unknown> =>
  fc.oneof(texts, fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<unknown>)

/** The usual value of a field; once in a while another. */
export const fieldsOf =
  (anything: fc.Arbitrary<unknown>, usualWeight = 25) =>
  (...usual: readonly unknown[]): fc.Arbitrary<unknown> =>
    fc.oneof({ weight: usualWeight, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: anything })

export const encoded = (texts: fc.Arbitrary<string>): fc.Arbitrary<string> => texts.map((one) => encodeURIComponent(one.toWellFormed()))

/** The path of a request without its query; a last slash has no meaning. */
export const endpointOf = ({ path }: GeneratedRequest): string => (path.split('?', 1)[0] ?? '').replace(/\/$/, '')

export const json = { 'content-type': 'application/json' }

/** A request with this value as JSON. */
export const jsonRequest = (method: string, path: string, value?: unknown): GeneratedRequest => ({
  method,
  path,
  body: method === 'GET' || value === undefined ? undefined : (JSON.stringify(value) ?? ''),
  headers: json,
})

/** The body of an answer, which must be a JSON object with these members and no others. */
export function objectIn({ text }: GeneratedAnswer, members: Readonly<Record<string, (value: unknown) => boolean>>): void {
  const found = JSON.parse(text) as Record<string, unknown>
  const names = Object.keys(members)
  if (Object.keys(found).sort().join() !== names.sort().join())
    throw new Error(`members ${Object.keys(found).join()} instead of ${names.join()}`)
  for (const name of names) if (members[name]?.(found[name]) !== true) throw new Error(`a wrong member ${name}`)
}

export const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
export const isNumber = (value: unknown): boolean => typeof value === 'number'
export const isTextOrNull = (value: unknown): boolean => value === null || typeof value === 'string'
