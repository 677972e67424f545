/** Reading on the thread and reading at once, compared. */
import { createHash, createPrivateKey } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openIds, openSecrets, systemClock, systemRandom } from '#base'
import { makeEd25519Key, type SigningKey } from '#dkim'
import type { Domains } from '#domains'
import { type Content, encodeContent, type PartsContent } from '#emails'
import { ContentReader } from './content-reader.ts'
import type { ContentPart } from './read-content.ts'

const key: SigningKey = {
  domain: 'house.test',
  selector: 's',
  algorithm: 'ed25519',
  privateKey: createPrivateKey(makeEd25519Key().privateKey),
}
const domains = {
  platformKeys: async (name: string) => (name === 'house.test' ? [key] : []),
  signingKeys: async () => undefined,
} as unknown as Domains
const deps = { clock: systemClock, domains, secrets: openSecrets('a secret of tests', systemRandom) }
const atOnce = new ContentReader(deps, Number.POSITIVE_INFINITY)
const onThread = new ContentReader(deps, 0)
const recipient = { tenantId: 'tn_0123456789abcdefghijkl', emailId: openIds(systemRandom).emailId(1_764_000_000_000) }

const everyPart: ReadonlySet<ContentPart> = new Set(['content', 'headers', 'attachments', 'raw'])

const attachment = fc.record({
  filename: fc.constantFrom('a.bin', 'é.pdf'),
  contentType: fc.constantFrom('application/octet-stream', 'text/plain'),
  // Also so large that the thread transfers it.
  content: fc.tuple(fc.uint8Array({ minLength: 1 }), fc.constantFrom(1, 200_000)).map(([octets, times]) =>
    Buffer.concat(Array(times).fill(Buffer.from(octets)))
      .subarray(0, 1_500_000)
      .toString('base64'),
  ),
})

const parts: fc.Arbitrary<PartsContent> = fc.record(
  {
    kind: fc.constant('parts' as const),
    from: fc.constant('Shop <shop@house.test>'),
    to: fc.constant<string[]>(['ann@example.com']),
    cc: fc.constant<string[]>([]),
    subject: fc.string({ unit: 'grapheme', maxLength: 60 }),
    html: fc.constantFrom('<p>Hi <a href="https://shop.example/a?b=c">é</a></p>', '<p></p>'),
    text: fc.string({ unit: 'grapheme' }),
    headers: fc.constant<[string, string][]>([['X-Order', '17']]),
    attachments: fc.array(attachment, { maxLength: 2 }),
  },
  { requiredKeys: ['kind', 'from', 'to', 'cc', 'subject', 'headers', 'attachments'] },
)

const rawMessage = fc.uint8Array({ minLength: 1, maxLength: 400 }).map((octets) => ({
  kind: 'raw' as const,
  raw: Buffer.concat([
    Buffer.from('From: shop@house.test\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n'),
    Buffer.from('<a href="https://shop.example/">x</a>\r\n--b\r\nContent-Disposition: attachment; filename=a\r\n\r\n'),
    Buffer.from(octets),
    Buffer.from('\r\n--b--\r\n'),
  ]).toString('base64'),
}))

const content: fc.Arbitrary<Content> = fc.record(
  {
    message: fc.oneof(parts, rawMessage),
    messageId: fc.constant('id@house.test'),
    acceptedAtMs: fc.constant(1_764_000_000_000),
    returnPathDomain: fc.constant('rp.house.test'),
    marked: fc.constant(true as const),
    signing: fc.constantFrom({ platform: 'house.test' }, { domainId: 1, withEd25519: true }, null),
    tracking: fc.constant({ origin: 'https://track.house.test', clicks: true, opens: true, excluded: [] }),
  },
  { requiredKeys: ['message', 'messageId', 'acceptedAtMs', 'returnPathDomain', 'signing'] },
)

/** Octets become their length and digest: to compare them, `toEqual` makes a string for each of up to a million. */
function digested(value: unknown): unknown {
  if (value instanceof Uint8Array) return { length: value.length, sha256: createHash('sha256').update(value).digest('hex') }
  if (Array.isArray(value)) return value.map(digested)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, digested(one)]))
}

test('a content has the same parts on the thread as when it is read at once', async () => {
  await fc.assert(
    fc.asyncProperty(content, async (one) => {
      const body = encodeContent(one)
      const shown = await onThread.read(body, recipient, everyPart)
      expect(digested(shown)).toEqual(digested(await atOnce.read(body, recipient, everyPart)))
      for (const { content: octets } of shown.attachments ?? []) expect(Buffer.isBuffer(octets)).toBe(true)
      expect(shown.raw?.toString('latin1')).toContain(one.message.kind === 'raw' ? 'From: shop@house.test' : 'Subject:')
      expect(await onThread.readAsReceived(body, recipient)).toEqual(await atOnce.readAsReceived(body, recipient))
      for (const form of [undefined, 'sevenBit'] as const)
        expect(digested(await onThread.readToSend(body, recipient, form))).toEqual(digested(await atOnce.readToSend(body, recipient, form)))
    }),
    { numRuns: 40 },
  )
}, 120_000)

test('only the wanted parts are there', async () => {
  const [one] = fc.sample(content, 1)
  const shown = await onThread.read(encodeContent(one as Content), recipient, new Set(['headers']))
  expect(Object.keys(shown)).toEqual(['headers'])
})
