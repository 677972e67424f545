/** The exports of other services as suppressions: each in the form that the service documents, and files that no service writes. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readSuppressions } from '#imports'

type Arguments = Parameters<typeof readSuppressions>

async function rowsOf(vendor: Arguments[0], file: string | Buffer, list?: Arguments[2], chunkOctets = 1_000_000) {
  const octets = Buffer.from(file)
  async function* chunks() {
    for (let at = 0; at < octets.length; at += chunkOctets) yield octets.subarray(at, at + chunkOctets)
  }
  return Array.fromAsync(readSuppressions(vendor, chunks(), list))
}
const entry = (address: string, reason: string, createdAt?: string, source = 'automatic') => ({
  entry: { address, reason, source, createdAt: createdAt === undefined ? undefined : new Date(createdAt) },
})

describe('an export', () => {
  test('of SES, as list-suppressed-destinations prints it', async () => {
    const file = JSON.stringify(
      {
        SuppressedDestinationSummaries: [
          { EmailAddress: 'ann@one.example', Reason: 'BOUNCE', LastUpdateTime: '2026-03-01T09:30:00.123000+00:00' },
          { EmailAddress: 'bob@one.example', Reason: 'COMPLAINT', LastUpdateTime: 1_772_357_400.5 },
        ],
      },
      null,
      4,
    )
    expect(await rowsOf('ses', file)).toMatchObject([
      entry('ann@one.example', 'bounce', '2026-03-01T09:30:00.123Z'),
      entry('bob@one.example', 'complaint', '2026-03-01T09:30:00.500Z'),
    ])
  })

  test.each([
    ['ses', '{"SuppressedDestinationSummaries":[{"EmailAddress":"ann@one.example","Reason":"BOUNCE"}],"NextToken":', '"x"', 'null'],
    ['resend', '{"object":"list","data":[{"email":"ann@one.example","origin":"bounce"}],"has_more": ', 'true', 'false'],
  ] as const)('of %s in pages names the last page of the file if more follow', async (vendor, start, more, end) => {
    const [first, last] = [`${start}${more}}\n`, `${start}${end}}\n`]
    const ann = entry('ann@one.example', 'bounce')
    for (const chunkOctets of [1, 7, 1000]) {
      expect(await rowsOf(vendor, first + last, undefined, chunkOctets)).toMatchObject([ann, ann])
      const notLast = { line: 2, problem: expect.stringContaining('not the last') }
      expect(await rowsOf(vendor, last + first, undefined, chunkOctets)).toMatchObject([ann, ann, notLast])
    }
    const many = `${start}${more}}`.replace(/(\{"\w*[Ee]mail[^}]*\})/, Array(10_000).fill('$1').join(',\n      '))
    expect((await rowsOf(vendor, many)).at(-1)).toMatchObject({ problem: expect.stringContaining('not the last') })
    const empty = last.replace(/\[.*\]/, '[]')
    expect(await rowsOf(vendor, first + empty)).toMatchObject([ann])
    expect(await rowsOf(vendor, empty)).toEqual([])
  })

  test.each(['', '\ufeff'])('that is empty has no rows', async (file) => {
    expect(await rowsOf('ses', file)).toEqual([])
  })

  test.each([
    ['postmark', 'EmailAddress,SuppressionReason\nann@one.example,constructor\n'],
    ['resend', 'email,origin\nann@one.example,constructor\n'],
    ['ses', 'EmailAddress,Reason\nann@one.example,__proto__\n'],
  ] as const)('of %s with an unknown reason has a bad row', async (vendor, file) => {
    expect(await rowsOf(vendor, file)).toMatchObject([{ line: 2, problem: expect.stringContaining('unknown reason') }])
  })

  test('with a time beyond the year 9999 has none', async () => {
    expect(await rowsOf('resend', 'email,origin,created_at\nann@one.example,bounce,1700000000000000\n')).toMatchObject([
      entry('ann@one.example', 'bounce'),
    ])
  })

  test.each([
    ['bounces', 'bounce'],
    ['invalid_emails', 'hard fail'],
  ] as const)('of SendGrid with %s needs the name of the list', async (list, reason) => {
    const file = '\ufeffstatus,reason,email,created\r\n5.1.1,"550 no, ""really""\r\nno",ann@one.example,1772357400\r\n'
    expect(await rowsOf('sendgrid', file, list)).toMatchObject([entry('ann@one.example', reason, '2026-03-01T09:30:00Z')])
    await expect(rowsOf('sendgrid', file)).rejects.toMatchObject({ suggestion: expect.stringContaining('--list bounces') })
  })

  test("of SendGrid's blocks is skipped, because SendGrid goes on to send to the addresses", async () => {
    const file = 'status,reason,email,created\n4.7.1,IP blocked,ann@one.example,1443651154\n'
    expect(await rowsOf('sendgrid', file, 'blocks')).toEqual([{ line: 2, skipped: expect.stringContaining('does not suppress') }])
  })

  test('of SendGrid with spam reports or unsubscribes shows its list', async () => {
    expect(await rowsOf('sendgrid', '[{"created":1772357400,"email":"ann@one.example","ip":"192.0.2.1"}]')).toMatchObject([
      entry('ann@one.example', 'complaint', '2026-03-01T09:30:00Z'),
    ])
    expect(await rowsOf('sendgrid', 'email,created\nann@one.example,2026-03-01 09:30:00\n')).toMatchObject([
      entry('ann@one.example', 'unsubscribe', '2026-03-01T09:30:00Z'),
    ])
  })

  test('of Mailgun, in JSON pages, without people who left a single tag', async () => {
    const time = 'Sun, 01 Mar 2026 09:30:00 UTC'
    const bounces = { items: [{ address: 'ann@one.example', code: '550', error: 'no', created_at: time }], paging: { next: 'https://x' } }
    const left = [
      { address: 'bob@one.example', tags: ['*'], created_at: time },
      { address: 'eve@one.example', tags: ['news'], created_at: time },
    ]
    expect(await rowsOf('mailgun', `${JSON.stringify(bounces)}\n${JSON.stringify({ items: left })}`)).toMatchObject([
      entry('ann@one.example', 'bounce', '2026-03-01T09:30:00Z'),
      entry('bob@one.example', 'unsubscribe', '2026-03-01T09:30:00Z'),
      { line: 2, skipped: expect.stringContaining('news') },
    ])
  })

  test('of Postmark, as its suppression dump', async () => {
    const dump = ['HardBounce', 'SpamComplaint', 'ManualSuppression'].flatMap((SuppressionReason, nth) =>
      ['Recipient', 'Customer'].map((Origin) => ({
        EmailAddress: `a${nth}${Origin[0]}@one.example`,
        SuppressionReason,
        Origin,
        CreatedAt: '2026-03-01T04:30:00-05:00',
      })),
    )
    const rows = await rowsOf('postmark', JSON.stringify({ Suppressions: dump }))
    expect(rows.map((row) => 'entry' in row && [row.entry.reason, row.entry.source, row.entry.createdAt?.toISOString()])).toEqual(
      [
        ['bounce', 'automatic'],
        ['bounce', 'automatic'],
        ['complaint', 'automatic'],
        ['complaint', 'automatic'],
        ['unsubscribe', 'automatic'],
        ['imported from Postmark', 'manual'],
      ].map((one) => [...one, '2026-03-01T09:30:00.000Z']),
    )
  })

  test('of Resend', async () => {
    const file = JSON.stringify({
      object: 'list',
      data: [{ id: '1', email: 'ann@one.example', origin: 'bounce', created_at: '2026-03-01' }],
    })
    expect(await rowsOf('resend', file)).toMatchObject([entry('ann@one.example', 'bounce', '2026-03-01T00:00:00Z')])
  })

  test('with bad rows names their lines and goes on', async () => {
    const file = 'EmailAddress;Reason\nnobody;BOUNCE\n\nann@one.example;BOUNCE\nbob@one.example;SOMETHING\nbob@one.example\n'
    expect(await rowsOf('ses', file)).toMatchObject([
      { line: 2, problem: expect.stringContaining('nobody') },
      { line: 4, entry: { address: 'ann@one.example', createdAt: undefined } },
      { line: 5, problem: expect.stringContaining('SOMETHING') },
      { line: 6, problem: expect.stringContaining('1 cells') },
    ])
  })

  test.each([
    ['in another encoding', Buffer.from('\ufeffemail\nann@one.example', 'utf16le')],
    ['without a header', 'ann@one.example,1\n'],
    ['with a quote that is not closed', `email\n"ann@one.example\n${'x\n'.repeat(50_000)}`],
    ['with one endless line', 'x'.repeat(1_000_000)],
    ['of JSON that is none', '{"a":1}}'],
  ])('%s is refused with the next step', async (_, file) => {
    await expect(rowsOf('ses', file)).rejects.toMatchObject({ code: 'validation_error', suggestion: expect.stringMatching(/\w/) })
  })
})

const address = fc.stringMatching(/^[a-z]{1,8}@[a-z]{1,8}\.example$/)
const text = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r\n', 'é', '{', ']', '\\', ' ') })
const pieces = fc.integer({ min: 1, max: 40 })

test('CSV cells of any text do not move the addresses, wherever the octets are split', async () => {
  const cell = (value: string) => `"${value.replaceAll('"', '""')}"`
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(address, text), { minLength: 1 }), pieces, async (rows, octets) => {
      const file = ['email,reason', ...rows.map(([email, reason]) => `${email},${cell(reason)}`)].join('\r\n')
      const read = await rowsOf('sendgrid', file, 'bounces', octets)
      expect(read.map((row) => 'entry' in row && row.entry.address)).toEqual(rows.map(([email]) => email))
    }),
    { numRuns: 50 },
  )
})

test('JSON values of any text and depth do not move the addresses, wherever the octets are split', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(address, fc.jsonValue(), text), { minLength: 1 }),
      pieces,
      fc.boolean(),
      async (rows, octets, inList) => {
        const items = rows.map(([email, more, reason]) => ({ more, reason, address: email, code: '550' }))
        const file = JSON.stringify(inList ? items : { before: { x: 1 }, items, after: 'x' })
        const read = await rowsOf('mailgun', file, undefined, octets)
        expect(read.map((row) => 'entry' in row && row.entry.address)).toEqual(rows.map(([email]) => email))
      },
    ),
    { numRuns: 50 },
  )
})
