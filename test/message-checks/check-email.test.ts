/** POST /emails/check: each finding appears for a message that has the fault, and not for a good one. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '#db'
import { type Service, startService } from '../support/in-process-service.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null })
  await service.addDomain(service.tenantId, 'checked.test')
})
afterAll(() => service.stop())

interface Finding {
  check: string
  severity: string
  message: string
  suggestion: string | null
}

const good = {
  from: 'Shop <shop@checked.test>',
  subject: 'Your order has shipped',
  html: '<meta name="color-scheme" content="light dark"><p style="color: #123">Your order has left our warehouse.</p><img src="https://checked.test/a.png" alt="Parcel"><a href="https://www.checked.test/orders">Order</a>',
  text: 'Your order has left our warehouse: https://www.checked.test/orders',
  unsubscribe: true,
}

const check = async (changes: object, key = service.testKey) => {
  const answer = await service.call('POST', '/emails/check', { key, body: { ...good, ...changes } })
  expect(answer.status, answer.text).toBe(200)
  return answer.body.data as { problems: number; findings: Finding[] }
}
const of = async (changes: object, name: string) =>
  (await check(changes)).findings.filter((one) => one.check === name).map(({ severity, message }) => `${severity}: ${message}`)

test('a good message has no finding that needs action, except for records that were not checked', async () => {
  const { problems, findings } = await check({})
  expect(problems).toBe(0)
  expect(findings.filter(({ severity }) => severity !== 'ok').map((one) => one.check)).toEqual(['alignment'])
  expect(findings.every(({ severity, suggestion }) => (severity === 'ok') === (suggestion === null))).toBe(true)
})

test('fields that the endpoint does not take are ignored, whatever they hold', async () => {
  expect((await check({ to: 1, cc: 2, tag: 1e161, metadata: [3], scheduledAt: {}, vendor: { replyTo: 4 } })).problems).toBe(0)
})

test.each<[string, object, string]>([
  ['authentication', { from: 'a@elsewhere.test' }, 'problem: elsewhere.test is not a sending domain of the tenant'],
  ['subject', { subject: 'BUY IT NOW, PLEASE' }, 'advice: The subject is in capitals'],
  ['subject', { subject: 'Look!!' }, 'advice: The subject repeats punctuation marks'],
  ['text', { text: undefined }, 'advice: The message has no text of its own: Postrider makes one from the HTML'],
  ['text', { text: undefined, html: undefined }, 'problem: The message has neither text nor HTML'],
  ['size', { html: `<p>${'x'.repeat(110_000)}</p>` }, 'problem: The HTML has 107.4 kB: Gmail hides all beyond 102 kB'],
  ['links', { text: 'http://www.checked.test/' }, 'advice: 1 link is not encrypted'],
  ['links', { text: 'https://192.0.2.1/a' }, 'problem: A link has an IP address instead of a name'],
  ['links', { text: 'https://bit.ly/a' }, 'problem: Links use a URL shortener: bit.ly'],
  ['links', { text: 'https://[x/' }, 'problem: 1 link is malformed: https://[x/'],
  ['links', { text: 'https://other.test/a' }, 'advice: Links lead to other domains than checked.test: other.test'],
  [
    'images',
    { html: '<p>Here is your picture of today</p><img src="a.png"><img alt="" src="b.png">' },
    'advice: 1 of 2 images have no alt text',
  ],
  ['images', { html: '<img src="a.png" alt="x">' }, 'problem: The HTML is only images'],
  ['html', { html: '<form><input></form><script>1 < 2</script>' }, 'problem: Mail programs remove these elements: form, input, script'],
  ['dark-mode', { html: '<td bgcolor="#fff">x</td>' }, 'advice: Colours are fixed, and dark mode is not considered'],
  ['words', { text: 'Act now! Free money, risk-free.' }, 'advice: Phrases that filters know from spam: act now, free money, risk-free'],
  ['unsubscribe', { unsubscribe: false }, 'advice: The message has no one-click unsubscription'],
  ['replies', { from: 'no-reply@checked.test' }, 'advice: no-reply@checked.test accepts no replies'],
])('%s: %j', async (name, changes, finding) => {
  expect(await of(changes, name)).toContain(finding)
})

const storeDmarcStatus = sql`
  update domains
  set findings = jsonb_build_object('dmarc', jsonb_build_object('status', $2::text, 'found', '[]'::jsonb, 'problem', null, 'suggestion', null))
  where name = $1`

test.each([
  ['OK', 'ok: ok.dmarc.test has a DMARC policy'],
  ['Missing', 'problem: missing.dmarc.test has no DMARC record'],
  // Two records, or one without a policy.
  ['Invalid', 'problem: The DMARC record of invalid.dmarc.test is not valid'],
])('a DMARC record with the status %s counts as such', async (status, finding) => {
  const name = `${status.toLowerCase()}.dmarc.test`
  await service.addDomain(service.tenantId, name)
  await service.db.run(storeDmarcStatus, [name, status])
  expect(await of({ from: `a@${name}` }, 'dmarc')).toEqual([finding])
})

test('an attachment counts with its decoded size', async () => {
  const attachments = [
    { filename: 'a.bin', contentType: 'application/octet-stream', content: Buffer.alloc(6 * 1_048_576).toString('base64') },
  ]
  expect(await of({ attachments }, 'attachments')).toEqual(['advice: The attachments have 6.0 MB'])
})

test('nothing is sent, and a sender that is no address is refused', async () => {
  await check({ to: ['b@simulator.test'] })
  expect((await service.call('GET', '/emails', { key: service.testKey })).body.total).toBe(0)
  const refused = await service.call('POST', '/emails/check', { key: service.testKey, body: { ...good, from: 'nobody' } })
  expect(refused.body.error).toMatchObject({ code: 'invalid_email_format', field: 'from' })
})
