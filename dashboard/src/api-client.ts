/** Requests to /v1 and the dashboard's own endpoints, with the session's header. A refusal becomes an `ApiError` with its message. */
import { texts } from './texts.ts'

export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly suggestion: string
  readonly requestId: string
  readonly field: string | undefined
  constructor(status: number, code: string, message: string, suggestion: string, requestId: string, field?: string) {
    super(message)
    this.status = status
    this.code = code
    this.suggestion = suggestion
    this.requestId = requestId
    this.field = field
  }
}

/** The same request may succeed later. */
export const mayPass = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.status === 0 || error.status >= 500 || error.status === 429

interface Envelope<Data> {
  success: boolean
  data: Data
  page?: number
  totalPages?: number
  total?: number
  error?: { code: string; message: string; suggestion: string; field?: string }
  meta: { requestId: string }
}

export interface Page<Item> {
  items: Item[]
  page: number
  total: number
  totalPages: number
}

const giveUpAfterMs = 35_000

async function ask<Data>(method: string, path: string, body?: object, more: Record<string, string> = {}): Promise<Envelope<Data>> {
  const answer = await fetch(path, {
    method,
    headers: { 'x-postrider-session': '1', accept: 'application/json', ...(body ? { 'content-type': 'application/json' } : {}), ...more },
    ...(body ? { body: JSON.stringify(body) } : {}),
    signal: AbortSignal.timeout(giveUpAfterMs),
  }).catch(() => {
    throw new ApiError(0, 'unreachable', texts.problems.unreachable, texts.problems.unreachableHelp, '')
  })
  const read = (await answer.json().catch(() => ({}))) as Partial<Envelope<Data>>
  const requestId = read.meta?.requestId ?? answer.headers.get('x-request-id') ?? ''
  if (!answer.ok || !read.success) {
    const {
      code = 'internal_error',
      message = texts.problems.answered(answer.status),
      suggestion = texts.problems.tryAgain,
      field,
    } = read.error ?? {}
    throw new ApiError(answer.status, code, message, suggestion, requestId, field)
  }
  return read as Envelope<Data>
}

/** Omits undefined and empty values. */
export function withQuery(path: string, query: Record<string, string | number | undefined>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`
}

export const get = async <Data>(path: string): Promise<Data> => (await ask<Data>('GET', path)).data
export const post = async <Data>(path: string, body: object = {}): Promise<Data> => (await ask<Data>('POST', path, body)).data
/** With the key, a request that is sent again after a lost reply has no second effect. */
export const postOnce = async <Data>(path: string, idempotencyKey: string): Promise<Data> =>
  (await ask<Data>('POST', path, {}, { 'idempotency-key': idempotencyKey })).data
/** `crypto.randomUUID` is missing on pages without https. */
export const newIdempotencyKey = (): string =>
  btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(18)))).replace(/[+/]/g, '-')
export const patch = async <Data>(path: string, body: object): Promise<Data> => (await ask<Data>('PATCH', path, body)).data
export const remove = async <Data>(path: string): Promise<Data> => (await ask<Data>('DELETE', path)).data

export async function getPage<Item>(path: string): Promise<Page<Item>> {
  const { data, page = 1, total = 0, totalPages = 0 } = await ask<Item[]>('GET', path)
  return { items: data, page, total, totalPages }
}

/** Downloads a file of the API in the browser. */
export async function download(path: string, name: string): Promise<void> {
  const answer = await fetch(path, { headers: { 'x-postrider-session': '1' } })
  if (!answer.ok)
    throw new ApiError(
      answer.status,
      'internal_error',
      texts.problems.answered(answer.status),
      texts.problems.tryAgain,
      answer.headers.get('x-request-id') ?? '',
    )
  save(name, await answer.blob())
}

/** Always as a download: content from outside is never opened in the dashboard's origin. */
export function save(name: string, octets: Blob): void {
  const url = URL.createObjectURL(octets)
  const link = Object.assign(document.createElement('a'), { href: url, download: name })
  link.click()
  URL.revokeObjectURL(url)
}

/** Of base64 in a response. */
export const octetsOf = (base64: string): Uint8Array<ArrayBuffer> => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
