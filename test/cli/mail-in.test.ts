/** The commands of mail in: routes are added, changed and removed; received messages are listed, shown and saved as they arrived. */
import { mkdtemp, readFile, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { txtResolver } from '../support/authentication-samples.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { runHere } from '../support/run-command.ts'
import { greetedClient, sendIncoming } from '../support/send-incoming.ts'

const published = new Map([
  ['example.net', ['v=spf1 ip4:127.0.0.1 -all']],
  ['_dmarc.example.net', ['v=DMARC1; p=reject']],
])

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, roles: ['inbound'], receiving: { resolver: txtResolver(published) } })
  await service.addDomain(service.tenantId, 'in.test')
})
afterAll(() => service.stop())

/** `text` is the standard output, `said` the standard error. */
async function ran(...words: string[]): Promise<{ code: number; text: string; said: string }> {
  const printed: string[] = []
  const said: string[] = []
  const error = vi.spyOn(console, 'error').mockImplementation((line) => void said.push(String(line)))
  const environment = { POSTRIDER_URL: `http://127.0.0.1:${service.port}`, POSTRIDER_KEY: service.liveKey }
  const code = await runHere(words, { environment, print: (text) => void printed.push(text) })
  error.mockRestore()
  return { code, text: printed.join('\n'), said: said.join('\n') }
}

/** A new route takes effect within about a second. */
async function receive(to: string, octets: string): Promise<void> {
  await using client = await greetedClient(service.ports.smtp)
  await vi.waitFor(async () => expect(await sendIncoming(client, { to: [to], octets })).toMatch(/^250/), { timeout: 10_000, interval: 100 })
}

test('a route is added, forwarded, disabled and removed by its address', async () => {
  expect((await ran('route', 'add', 'sales@in.test')).text).toMatch(
    /^sales@in\.test receives mail \(route_\w+\)\npublish this MX record at in\.test, .*: 10 house\.test$/,
  )
  expect(await ran('route', 'update', 'Sales@in.test', '--forward', 'ann@example.net')).toMatchObject({
    code: 0,
    text: 'sales@in.test receives mail; forwarded to ann@example.net',
  })
  expect((await ran('route', 'list')).text).toMatch(/^sales@in\.test +route_\w+ {2}to ann@example\.net$/)
  const disabled = await ran('route', 'update', 'sales@in.test', '--disable', '--no-forward')
  expect(disabled.text).toBe('sales@in.test is disabled: mail to it is refused; not forwarded')
  const { routes } = JSON.parse((await ran('route', 'list', '--json')).text) as { routes: { id: string }[] }
  expect(routes).toMatchObject([{ address: 'sales@in.test', forwardTo: null, enabled: false }])
  expect((await ran('route', 'update', routes[0]?.id ?? '', '--enable', '--json')).text).toContain('"enabled":true')
  expect((await ran('route', 'remove', 'sales@in.test')).text).toBe('sales@in.test no longer receives mail')
  expect((await ran('route', 'list')).text).toMatch(/^no routes\. /)
})

test('a route for replies is added and marked in the list', async () => {
  expect((await ran('route', 'add', 'reply-*@in.test', '--replies')).text).toMatch(/^reply-\*@in\.test receives mail/)
  expect((await ran('route', 'list')).text).toMatch(/^reply-\*@in\.test +route_\w+ {2}replies$/)
  await ran('route', 'remove', 'reply-*@in.test')
})

test('a wrong change of a route is refused with the option that is wrong', async () => {
  await ran('route', 'add', 'wrong@in.test')
  const update = (...options: string[]) => ran('route', 'update', 'wrong@in.test', ...options)
  expect(await update()).toMatchObject({ code: 2, said: 'give --forward, --no-forward, --enable or --disable' })
  expect(await update('--enable', '--disable')).toMatchObject({ code: 2, said: 'give --enable or --disable, not both' })
  expect(await update('--forward', 'a@b.test', '--no-forward')).toMatchObject({ code: 2, said: 'give --forward or --no-forward, not both' })
  expect(await update('--forward', 'ann')).toMatchObject({
    code: 2,
    said: expect.stringMatching(/^invalid_email_format: --forward must be an email address\n/),
  })
  expect(await ran('route', 'update', 'other@in.test', '--disable')).toMatchObject({
    code: 2,
    said: 'no such route: other@in.test. Compare with the list: postrider route list',
  })
  await ran('route', 'remove', 'wrong@in.test')
})

test('a received message is listed, shown without control characters, and saved once as it arrived', async () => {
  await ran('route', 'add', 'help@in.test', '--forward', 'ben@example.org')
  expect((await ran('received', 'list')).text).toMatch(/^no received messages\. /)
  const octets = [
    'From: Ann <ann@example.net>',
    'To: help@in.test',
    'Subject: Order 7',
    'Message-ID: <seven@example.net>',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: 8bit',
    '',
    'Where is it?\u009b31m',
    'Ann',
  ].join('\r\n')
  await receive('help@in.test', octets)

  const [line = ''] = (await ran('received', 'list', '--limit', '1')).text.split('\n')
  const [id = ''] = line.split(' ')
  expect(line).toMatch(/^\w{22} {2}\S+Z {2}DMARC pass +ann@example\.net +help@in\.test +Order 7$/)
  expect((await ran('received', 'list', '--from', 'Ann@example.net', '--to', 'help@in.test')).text).toBe(line)
  for (const none of [
    ['--from', 'help@in.test'],
    ['--replies-to', id],
  ])
    expect((await ran('received', 'list', ...none)).text).toMatch(/^no received messages\. /)
  const file = join(await mkdtemp(join(tmpdir(), 'postrider-received-')), 'seven.eml')
  const { code, text } = await ran('received', 'show', id, '--save', file)
  expect(code).toBe(0)
  expect(text).toContain(
    '  from      Ann <ann@example.net>\n  envelope  reader@example.net\n  to        help@in.test\n  subject   Order 7\n',
  )
  expect(text).toContain('  DMARC     pass  example.net, policy reject\n  SPF       pass  example.net\n')
  expect(text).toMatch(/\n {2}forwarded ben@example\.org, email \w{22}\n/)
  expect(text).toMatch(/\n\nWhere is it\? 31m\nAnn$/)
  expect(await readFile(file, 'utf8')).toBe(`${octets}\r\n`)
  expect((await stat(file)).mode & 0o077).toBe(0)
  expect(await ran('received', 'show', id, '--save', file)).toMatchObject({
    code: 1,
    text: '',
    said: expect.stringContaining('seven.eml: '),
  })
  const shown = JSON.parse((await ran('received', 'show', id, '--json')).text) as { headers: object[] }
  expect(shown).toMatchObject({ id, subject: 'Order 7', headers: expect.arrayContaining([{ name: 'To', value: 'help@in.test' }]) })
})

test('an unknown message and a wrong number are refused with the next command', async () => {
  expect(await ran('received', 'show', 'x')).toMatchObject({
    code: 2,
    said: expect.stringMatching(/^not_found: .*\nRun postrider received list to find it$/),
  })
  expect(await ran('received', 'list', '--limit', '0')).toMatchObject({ code: 2, said: '--limit must be a whole number from 1 to 1000' })
})
