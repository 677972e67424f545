/** The commands over the API do the same on this machine's installation and on a remote service. */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { listAudit } from '#members'
import { type Service, startService } from '../support/in-process-service.ts'
import { onDatabaseOf, runHere } from '../support/run-command.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'

let service: Service
let receiver: Receiver
let liveKey: string
beforeAll(async () => {
  const settings = { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8', POSTRIDER_DNS: '127.0.0.1:9' }
  service = await startService({ rateLimit: null, settings, roles: ['delivery'] })
  receiver = await startReceiver()
  liveKey = (JSON.parse((await ran([], {}, 'key', 'create', '--type', 'live', '--json')).text) as { key: string }).key
})
afterAll(async () => {
  await receiver[Symbol.asyncDispose]()
  await service.stop()
})

interface Ran {
  code: number
  text: string
  said: string
}

/** Runs a command; `more` are its last words. */
async function ran(more: readonly string[], deps: Partial<Parameters<typeof runHere>[1]>, ...words: string[]): Promise<Ran> {
  const printed: string[] = []
  const said: string[] = []
  const error = vi.spyOn(console, 'error').mockImplementation((line) => void said.push(String(line)))
  const code = await runHere([...words, ...more], {
    ...onDatabaseOf(service, {
      POSTRIDER_HOSTNAME: 'mail.example.net',
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
      POSTRIDER_DNS: '127.0.0.1:9',
    }),
    print: (text) => void printed.push(text),
    ...deps,
  })
  error.mockRestore()
  return { code, text: printed.join('\n'), said: said.join('\n') }
}

const noInstallation = { withInstallation: () => Promise.reject(new Error('a remote command opened the installation')) }
const here = (...words: string[]) => ran([], {}, ...words)
const away = (...words: string[]) => ran(['--url', `http://127.0.0.1:${service.port}`, '--key', liveKey], noInstallation, ...words)
const byEnvironment = (...words: string[]) =>
  ran([], { ...noInstallation, environment: { POSTRIDER_URL: `http://127.0.0.1:${service.port}/v1/`, POSTRIDER_KEY: liveKey } }, ...words)

const json = <T>({ text, said }: Ran): T => {
  if (text === '') throw new Error(said)
  return JSON.parse(text) as T
}

describe.each([
  ['here', here],
  ['on a remote service', away],
  ['on a remote service that the environment names', byEnvironment],
] as const)('%s', (place, command) => {
  const name = `${place.replaceAll(' ', '-')}.example`

  test('a tenant is created, shown, listed, and deleted after a question or with --yes', async () => {
    const { id } = json<{ id: string }>(await command('tenant', 'create', '--name', place, '--json'))
    expect((await command('tenant', 'show', id)).text).toMatch(new RegExp(`^${id}  ${place}\ncreated .*\ndomains: none$`))
    expect((await command('tenant', 'list')).text).toContain(`${id}  ${place}`)
    const without = await command('tenant', 'delete', id)
    expect([without.code, without.said]).toEqual([2, expect.stringContaining('--yes')])
    expect(await command('tenant', 'delete', id, '--yes')).toMatchObject({ code: 0, text: `tenant ${id} (${place}) is deleted` })
    const gone = await command('tenant', 'show', id)
    expect([gone.code, gone.said]).toEqual([2, expect.stringMatching(/^not_found: .*\n/)])
  })

  test('a domain is added, listed, shown, checked and removed by its name', async () => {
    expect((await command('domain', 'add', name)).text).toContain(`of tenant ${service.tenantId}`)
    expect((await command('domain', 'list')).text).toContain(`${name}  not verified`)
    expect((await command('domain', 'show', name)).text).toMatch(/not verified; DNS not checked yet\n\n {2}TXT {3}/)
    expect(await command('domain', 'verify', name)).toMatchObject({ code: 1, text: expect.stringContaining('lookup failed') })
    const again = await command('domain', 'add', name)
    expect([again.code, again.said]).toEqual([2, expect.stringContaining(`postrider domain verify ${name}`)])
    expect(await command('domain', 'remove', name)).toMatchObject({ code: 0, text: `domain ${name} removed` })
    expect((await command('domain', 'list')).text).not.toContain(name)
  })

  test('a key is created, listed and revoked', async () => {
    const { id, key } = json<{ id: number; key: string }>(
      await command('key', 'create', '--type', 'test', '--name', 'short', '--permissions', 'emails:read', '--json'),
    )
    expect(key).toMatch(/^svc_test_/)
    expect((await command('key', 'list')).text).toContain(
      `${String(id).padEnd(12)}short  test key …${key.slice(-4)}, emails:read, never used`,
    )
    expect(await command('key', 'revoke', String(id))).toMatchObject({ code: 0, text: `key ${id} is revoked` })
    expect((await command('key', 'list')).text).not.toContain(`${id} `)
    expect(await command('key', 'revoke', String(id))).toMatchObject({
      code: 2,
      said: expect.stringMatching(/^not_found: no such key.*\nRun postrider key list to find it$/),
    })
  })

  test('an SMTP login is created with its user name', async () => {
    const { id, key, smtpUsername } = json<{ id: number; key: string; smtpUsername: string }>(
      await command('key', 'create', '--type', 'smtp', '--tenant', service.tenantId, '--json'),
    )
    expect(smtpUsername).toBe(`${service.tenantId}/${key}`)
    expect((await command('key', 'list', '--tenant', service.tenantId)).text).toContain(`${String(id).padEnd(12)}smtp-key  SMTP login`)
    await command('key', 'revoke', String(id))
  })

  test('an address is suppressed, listed and released', async () => {
    expect((await command('suppression', 'add', 'Ann@example.com', '--reason', 'asked')).text).toBe(
      'Ann@example.com is suppressed'.toLowerCase(),
    )
    expect((await command('suppression', 'list', '--address', 'ann@')).text).toMatch(
      /^ann@example\.com +\S+ {2}all tenants +manual {2}asked$/,
    )
    await command('suppression', 'add', 'ben@example.com', '--tenant', service.tenantId)
    expect((await command('suppression', 'list', '--address', 'ben@')).text).toContain(`  ${service.tenantId}  manual`)
    await command('suppression', 'remove', 'ben@example.com', '--tenant', service.tenantId)
    expect((await command('suppression', 'remove', 'ann@example.com')).text).toBe('ann@example.com is no longer suppressed')
    expect((await command('suppression', 'list', '--address', 'ann@')).text).toBe('no suppressed addresses')
    const wrong = await command('suppression', 'add', 'ann')
    expect([wrong.code, wrong.said]).toEqual([2, expect.stringMatching(/^invalid_email_format: /)])
  })

  test('suppressions of another service come once, with their times', async () => {
    const file = join(await mkdtemp(join(tmpdir(), 'postrider-import-')), 'suppressed.json')
    const rows = [`ann@${name}`, `bob@${name}`, 'not an address'].map((EmailAddress) => ({
      EmailAddress,
      Reason: 'BOUNCE',
      LastUpdateTime: '2026-03-01T09:30:00Z',
    }))
    await writeFile(file, JSON.stringify({ SuppressedDestinationSummaries: rows }))
    const run = (...more: string[]) => command('import', 'suppressions', '--from', 'ses', file, '--json', ...more)
    const counts = { rows: 3, added: 2, existing: 0, bad: 1 }
    expect(json(await run('--dry-run'))).toMatchObject({ ...counts, dryRun: true })
    expect(json(await run())).toMatchObject({ ...counts, badRows: [{ line: 1, problem: expect.stringContaining('not an address') }] })
    expect(json(await run())).toMatchObject({ ...counts, added: 0, existing: 2 })
    const listed = await service.call('GET', `/suppressions?address=ann@${name}`, { key: service.liveKey })
    expect(listed.body.data).toMatchObject([{ reason: 'bounce', createdAt: '2026-03-01T09:30:00.000Z' }])
    expect(await command('import', 'suppressions', '--from', 'ses', `${file}.missing`)).toMatchObject({
      code: 1,
      said: expect.stringContaining('suppressed.json.missing: no such file'),
    })
    for (const who of ['ann', 'bob']) expect(await command('suppression', 'remove', `${who}@${name}`)).toMatchObject({ code: 0 })
  })

  test('an email that fails is sent with exit code 1, and explained', async () => {
    const address = ['--url', `http://127.0.0.1:${service.port}`, '--key', service.testKey]
    const words = ['--from', 'shop@simulator.test', '--to', `hardfail+${place.replaceAll(' ', '-')}@simulator.test`]
    const sent = await ran(address, noInstallation, 'send', ...words)
    expect([sent.code, sent.said]).toEqual([1, expect.stringMatching(/^hardfail: postrider email show \S+ explains it$/)])
    const [id = ''] = sent.text.split(' ')
    expect((await command('explain', id)).text).toMatch(/^status: hardfail\nnow: {4}\S.*\nnext: {3}\S.*$/)
    expect(await command('email', 'retry', id)).toMatchObject({ code: 0, text: expect.stringMatching(new RegExp(`^${id}: \\S`)) })
    const wrong = await command('email', 'retry', 'nope')
    expect([wrong.code, wrong.said]).toEqual([2, 'not_found: no such email\nRun postrider email list to find it'])
  })

  test('an email is scheduled, rescheduled and cancelled', async () => {
    const address = ['--url', `http://127.0.0.1:${service.port}`, '--key', service.testKey]
    const words = ['--from', 'shop@simulator.test', '--to', 'delivered@simulator.test']
    const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()
    const [first, second] = [inHours(1), inHours(2)]
    const sent = await ran(address, noInstallation, 'send', ...words, '--at', first)
    const [id = ''] = sent.text.split(' ')
    expect(sent).toMatchObject({ code: 0, text: `${id} pending until ${first}` })
    expect((await command('email', 'show', id)).text).toContain(`  scheduled ${first}\n`)
    const moved = `${id} pending: leaves at ${second}\n  delivered@simulator.test`
    expect(await command('email', 'reschedule', id, '--at', second)).toMatchObject({ code: 0, text: moved })
    const wrong = await command('email', 'reschedule', id, '--at', 'tomorrow')
    expect([wrong.code, wrong.said]).toEqual([2, expect.stringMatching(/^validation_error: --at is neither an ISO 8601 time/)])
    const cancelled = json<{ status: string }>(await command('email', 'cancel', id, '--json'))
    expect(cancelled).toMatchObject({ id, status: 'hardfail', scheduledAt: second, cancelledAt: expect.any(String) })
    expect((await command('email', 'cancel', id)).code).toBe(0)
    const late = await command('email', 'reschedule', id, '--at', second)
    expect([late.code, late.said]).toEqual([2, expect.stringContaining('email_not_scheduled: the email was cancelled')])
  })

  test('a webhook is added, tested and removed', async () => {
    const { id, secret } = json<{ id: string; secret: string }>(
      await command('webhook', 'add', receiver.url, '--name', 'orders', '--events', 'MessageSent,MessageBounced', '--json'),
    )
    expect(secret).toMatch(/^whsec_/)
    expect((await command('webhook', 'list')).text).toBe(`${id.padEnd(12)}orders  ${receiver.url}, MessageSent MessageBounced`)
    expect(await command('webhook', 'test', id, '--event', 'MessageBounced')).toMatchObject({
      code: 0,
      text: expect.stringMatching(/^ok: status 2/),
    })
    expect((await command('webhook', 'test', id, '--event', 'Nothing')).code).toBe(2)
    expect((await command('webhook', 'remove', id)).text).toBe(`webhook ${id} is removed`)
    expect((await command('webhook', 'list')).text).toMatch(/^the organisation has no webhooks/)
  })

  test('emails are listed with filters, and shown with their attempts', async () => {
    const subject = `From ${place}`
    const message = { from: 'shop@simulator.test', to: ['delivered@simulator.test'], subject, text: 'x', tag: name }
    const { id } = (await service.call('POST', '/emails', { key: service.testKey, body: message })).body.data as { id: string }
    await expect
      .poll(async () => (await command('email', 'show', id)).text)
      .toMatch(new RegExp(`^${id} sent \\(test\\)\n[^]*\nAttempts:\n.* sent: `))
    const listed = json<{ emails: { id: string }[] }>(await command('email', 'list', '--tag', name, '--status', 'sent', '--test', '--json'))
    expect(listed.emails.map((one) => one.id)).toEqual([id])
    expect((await command('email', 'list', '--tag', name)).text).toMatch(
      new RegExp(`^${id} .* sent +delivered@simulator.test +${subject}  \\(test\\)$`),
    )
    expect((await command('email', 'list', '--tag', name, '--live')).text).toBe('no emails')
    for (const wrong of [
      ['--status', 'lost'],
      ['--limit', '0'],
      ['--test', '--live'],
    ])
      expect((await command('email', 'list', ...wrong)).code).toBe(2)
  })
})

describe('a deletion on a terminal', () => {
  test.each([
    ['y', 0],
    ['yes', 0],
    ['', 2],
    ['n', 2],
  ])('asks, and the answer "%s" ends with %i', async (answer, code) => {
    const { id } = json<{ id: string }>(await here('tenant', 'create', '--name', 'Asked', '--json'))
    const questions: string[] = []
    const ask = async (question: string) => {
      questions.push(question)
      return answer
    }
    expect((await ran([], { ask }, 'tenant', 'delete', id)).code).toBe(code)
    expect(questions).toEqual([expect.stringMatching(`Delete tenant ${id} \\(Asked\\).*\\? \\[y/N\\] `)])
    expect((await here('tenant', 'show', id)).code).toBe(code === 0 ? 2 : 0)
  })
})

describe('a remote service', () => {
  const to = (url: string, key: string | undefined, ...words: string[]) =>
    ran(['--url', url, ...(key === undefined ? [] : ['--key', key])], noInstallation, ...words)

  test('that refuses the key is quoted with code, message and suggestion', async () => {
    const { code, said } = await to(`http://127.0.0.1:${service.port}`, `svc_live_${'x'.repeat(32)}`, 'tenant', 'list')
    expect([code, said]).toEqual([2, expect.stringMatching(/^invalid_api_key: unknown API key\n\S+/)])
  })

  test('that does not answer is named, and the command ends with 1', async () => {
    const { code, said } = await ran(['--url', 'http://127.0.0.1:2', '--key', liveKey], noInstallation, 'key', 'revoke', '5')
    expect([code, said]).toEqual([1, expect.stringMatching(/^no response from http:\/\/127\.0\.0\.1:2\/v1: connect ECONNREFUSED/)])
  })

  test('needs a key and an http URL; a key alone is a mistake', async () => {
    expect(await to('http://127.0.0.1:1', undefined, 'domain', 'list')).toMatchObject({
      code: 2,
      said: expect.stringContaining('POSTRIDER_KEY'),
    })
    expect(await to('ftp://127.0.0.1', liveKey, 'domain', 'list')).toMatchObject({ code: 2, said: expect.stringContaining('--url') })
    expect(await ran(['--key', liveKey], {}, 'domain', 'list')).toMatchObject({
      code: 2,
      said: expect.stringContaining('--key needs --url'),
    })
  })

  test('cannot be asked to trust a domain', async () => {
    const { code, said } = await away('domain', 'add', 'lab.example', '--trust')
    expect([code, said]).toEqual([2, expect.stringContaining('only on the machine')])
    expect((await away('domain', 'list')).text).not.toContain('lab.example')
  })
})

test('the audit log names the operator of a local command and the key of a remote one, without addresses or secrets', async () => {
  const environment = { USER: 'ann' }
  await ran([], { environment }, 'suppression', 'add', 'secret.person@example.com')
  await ran([], { environment }, 'webhook', 'add', `${receiver.url}?token=hidden`)
  await away('suppression', 'remove', 'secret.person@example.com')
  const { entries } = await listAudit(service.db, { tenantId: null }, { number: 1, size: 3 })
  expect(entries.map(({ actor, action }) => [actor.kind, actor.name, action])).toEqual([
    ['key', 'live-key', 'suppressions.delete'],
    ['command', 'ann', 'webhook.add'],
    ['command', 'ann', 'suppression.add'],
  ])
  expect(JSON.stringify(entries)).not.toMatch(/secret\.person|hidden|svc_live/)
})

test.each(['not_found', 'code_of_a_newer_service'])(
  'a refusal by a remote service is printed without its control characters: %s',
  async (refused) => {
    const error = { code: refused, message: 'no such\u001b[2J email', suggestion: 'Run\u009b31m this\nor that' }
    const hostile = createServer((_request, response) =>
      response
        .writeHead(404, { 'content-type': 'application/json' })
        .end(JSON.stringify({ success: false, error, meta: { requestId: 'r' } })),
    )
    await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void hostile.close())
    const url = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`
    const { code, said } = await ran(['--url', url, '--key', liveKey], noInstallation, 'email', 'show', 'x')
    expect([code, said]).toEqual([2, `${refused}: no such [2J email\nRun 31m this\nor that`])
  },
)
