/** The API of transports: its callers and refusals; no response, log or audit entry has a password. */
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { sql } from '#db'
import { listTransports } from '#delivery'
import { listAudit } from '#members'
import { openTransportStates } from '../../src/delivery/transports/transport-states.ts'
import { ask, signedIn } from '../dashboard/signed-in-browser.ts'
import { startFakeMx } from '../support/fake-mx.ts'
import { type Answer, type Service, startService } from '../support/in-process-service.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.2/32,192.0.2.0/24,198.51.100.0/24' } })
})
afterAll(() => service.stop())

const call = (method: string, path: string, body?: object, key = service.testKey): Promise<Answer> =>
  service.call(method, path, { key, ...(body ? { body } : {}) })
const refusal = async (answer: Promise<Answer>) => {
  const { status, body } = await answer
  return { status, code: body.error?.code, field: body.error?.field, message: body.error?.message }
}
let number = 0
async function made(more: object = {}): Promise<string> {
  const name = `relay-${++number}`
  const answer = await call('POST', '/transports', { name, host: '192.0.2.7', ...more })
  expect(answer.status, answer.text).toBe(201)
  return name
}

test('a relay is added with its defaults, listed, changed and removed', async () => {
  const name = await made({ username: 'me', password: 'sesame' })
  const added = {
    name,
    host: '192.0.2.7',
    port: 587,
    tls: 'required',
    username: 'me',
    connections: 20,
    rate: null,
    failover: true,
    fallback: null,
    state: 'up',
    down: [],
  }
  expect((await call('GET', `/transports/${name}`)).body.data).toMatchObject(added)
  expect((await call('GET', '/transports')).body.data).toMatchObject({ default: 'mx', transports: [added], rules: [] })
  const changed = await call('PATCH', `/transports/${name}`, { rate: 2.5, connections: 4, failover: false })
  expect(changed.body.data).toMatchObject({ ...added, rate: 2.5, connections: 4, failover: false })
  expect((await call('PATCH', `/transports/${name}`, { rate: null, username: null })).body.data).toMatchObject({
    rate: null,
    username: null,
  })
  expect((await call('DELETE', `/transports/${name}`)).status).toBe(200)
  expect(await refusal(call('GET', `/transports/${name}`))).toMatchObject({ status: 404, code: 'not_found' })
})

test('a stored password is never shown, and goes to no other host, port or TLS mode', async () => {
  const password = 'open-sesame-4711'
  const name = await made({ username: 'me', password })
  for (const change of [{ host: '198.51.100.1' }, { port: 2525 }, { tls: 'opportunistic' }, { username: 'other' }])
    expect(await refusal(call('PATCH', `/transports/${name}`, change))).toMatchObject({ status: 400, field: 'password' })
  expect((await call('PATCH', `/transports/${name}`, { connections: 2 })).status).toBe(200)
  expect((await call('PATCH', `/transports/${name}`, { host: '198.51.100.1', password })).status).toBe(200)
  const stored = (await listTransports(service.db, service.secrets)).find((one) => one.name === name)
  expect(stored).toMatchObject({ auth: { user: 'me', password }, guarded: true })
  expect((await call('GET', '/transports')).text).not.toContain(password)
  const { requestId } = (await call('PATCH', `/transports/${name}`, { password, rate: 7 })).body.meta
  const logged = async () => (await call('GET', `/logs/${requestId}`)).text
  await expect.poll(logged).toContain('redacted')
  expect(await logged()).not.toContain(password)
  const { entries } = await listAudit(service.db, { tenantId: null, actor: undefined, action: 'transports.update' }, { number: 1, size: 5 })
  expect(JSON.stringify(entries)).toContain(name)
  expect(JSON.stringify(entries)).not.toContain(password)
  await call('DELETE', `/transports/${name}`)
})

test.each([
  ['a name with capitals', { name: 'Old' }, 'name'],
  ['the name of a built-in transport', { name: 'mx' }, 'name'],
  ['a host with a space', { host: 'a b' }, 'host'],
  ['a host of this machine', { host: '127.0.0.1' }, 'host'],
  ['a host in a private network', { host: '10.0.0.1' }, 'host'],
  ['a port beyond the last', { port: 65_536 }, 'port'],
  ['a password without a user name', { password: 'x' }, 'username'],
  ['a user name without a password', { username: 'x' }, 'password'],
  ['a rate of zero', { rate: 0 }, 'rate'],
  ['another TLS mode', { tls: 'none' }, 'tls'],
  ['an absent fallback', { fallback: 'absent' }, 'fallback'],
])('refuses %s', async (_, body, field) => {
  expect(await refusal(call('POST', '/transports', { name: 'new', host: '192.0.2.7', ...body }))).toMatchObject({
    status: 400,
    code: 'validation_error',
    field,
  })
})

test('a second transport of a name is refused, and so is a fallback that leads back', async () => {
  const [one, two] = [await made(), await made()]
  expect(await refusal(call('POST', '/transports', { name: one, host: '192.0.2.7' }))).toMatchObject({
    status: 400,
    code: 'transport_already_exists',
  })
  expect((await call('PATCH', `/transports/${one}`, { fallback: two })).status).toBe(200)
  expect(await refusal(call('PATCH', `/transports/${two}`, { fallback: one }))).toMatchObject({ field: 'fallback' })
  expect(await refusal(call('DELETE', `/transports/${two}`))).toMatchObject({ status: 400, message: `${two} is the fallback of ${one}` })
  for (const name of [one, two]) await call('DELETE', `/transports/${name}`)
})

describe('a share', () => {
  test('is of all mail, or of a tenant, a domain and a tag; 0 removes the rule; a transport with a share stays', async () => {
    const name = await made()
    const shares = (percent: number) => [{ transport: name, percent }]
    expect((await call('POST', `/transports/${name}/share`, { percent: 30 })).body.data).toEqual({
      tenantId: null,
      domain: null,
      tag: null,
      shares: shares(30),
    })
    const scope = { tenantId: service.tenantId, domain: 'shop.example', tag: 'order' }
    const rule = await call('POST', `/transports/${name}/share`, { percent: 100, ...scope, domain: 'Shop.example' })
    expect(rule.body.data).toEqual({ ...scope, shares: shares(100) })
    expect((await call('GET', '/transports')).body.data).toMatchObject({
      rules: [{ shares: shares(30) }, { ...scope, shares: shares(100) }],
    })
    expect(await refusal(call('DELETE', `/transports/${name}`))).toMatchObject({ status: 400, code: 'validation_error' })
    expect((await call('POST', `/transports/${name}/share`, { percent: 0 })).body.data).toMatchObject({ shares: [] })
    await call('POST', `/transports/${name}/share`, { percent: 0, ...scope })
    expect((await call('DELETE', `/transports/${name}`)).status).toBe(200)
  })

  test('beyond what the others leave, of an unknown transport or tenant, or of the default is refused', async () => {
    const [one, two] = [await made(), await made()]
    await call('POST', `/transports/${one}/share`, { percent: 60 })
    expect(await refusal(call('POST', `/transports/${two}/share`, { percent: 41 }))).toMatchObject({ status: 400, field: 'percent' })
    for (const percent of [-1, 101, 0.5, '5'])
      expect(await refusal(call('POST', `/transports/${two}/share`, { percent }))).toMatchObject({ status: 400 })
    expect(await refusal(call('POST', '/transports/absent/share', { percent: 1 }))).toMatchObject({ status: 404 })
    expect(await refusal(call('POST', `/transports/${two}/share`, { percent: 1, tenantId: 'nobody' }))).toMatchObject({ status: 404 })
    const tag = String.fromCodePoint(...Array.from({ length: 1000 }, (_, index) => 0x4e00 + ((index * 7919) % 20_000)))
    expect(await refusal(call('POST', `/transports/${two}/share`, { percent: 1, tag }))).toMatchObject({ status: 400, field: 'tag' })
    expect(await refusal(call('POST', '/transports/mx/share', { percent: 50 }))).toMatchObject({ status: 400, field: 'transport' })
    await call('POST', `/transports/${one}/share`, { percent: 0 })
    for (const name of [one, two]) await call('DELETE', `/transports/${name}`)
  })
})

describe('a test', () => {
  test('of a relay shows whether it works, with the conversation of a failure and without the password', async () => {
    const server = new SMTPServer({
      disabledCommands: ['STARTTLS'],
      allowInsecureAuth: true,
      onAuth: ({ password }, _session, done) => (password === 'right' ? done(null, { user: 'me' }) : done(new Error('wrong password'))),
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.2', resolve))
    onTestFinished(() => new Promise((resolve) => server.close(() => resolve())))
    const { port } = server.server.address() as { port: number }
    const name = await made({ host: '127.0.0.2', port, tls: 'opportunistic', username: 'me', password: 'right' })
    expect((await call('POST', `/transports/${name}/test`)).body.data).toMatchObject({ works: true, address: '127.0.0.2', message: '' })
    await call('PATCH', `/transports/${name}`, { password: 'wrong-0815' })
    const failed = await call('POST', `/transports/${name}/test`)
    expect(failed.body.data).toMatchObject({ works: false, message: expect.stringContaining('wrong password') })
    expect(failed.text).not.toContain('wrong-0815')
    expect(failed.text).not.toContain(Buffer.from('wrong-0815').toString('base64'))
    await call('DELETE', `/transports/${name}`)
  })

  test('connects to no blocked network, also if the name of the host comes to lead there', async () => {
    const sink = await startFakeMx()
    onTestFinished(() => sink.close())
    const name = await made({ port: sink.port })
    await service.db.run(moveHost, [name, '127.0.0.1'])
    expect((await call('POST', `/transports/${name}/test`)).body.data).toMatchObject({ works: false, conversation: '' })
    expect(sink.connections).toBe(0)
    await call('DELETE', `/transports/${name}`)
  })
})

const moveHost = sql`
  update transports
  set host = $2
  where name = $1`

test('of the signed-in people only owners of the organisation may use it, keys need the organisation and full access', async () => {
  const names = { owner: 200, admin: 403, viewer: 403 } as const
  for (const role of ['owner', 'admin', 'viewer'] as const) {
    const headers = await signedIn(service, `${role}@house.test`, role)
    expect((await ask(service, 'GET', '/v1/transports', headers)).status, role).toBe(names[role])
  }
  const ofTenant = await signedIn(service, 'landlord@house.test', 'owner', service.tenantId)
  expect((await ask(service, 'GET', '/v1/transports', ofTenant)).code).toBe('permission_denied')
  for (const limited of [{ tenantId: service.tenantId }, { permissions: ['emails:send' as const, 'domains:manage' as const] }])
    expect(await refusal(call('GET', '/transports', undefined, await service.makeKey(limited)))).toMatchObject({
      code: 'permission_denied',
    })
})

test('the state of a transport is the one that the processes have found, until it works again', async () => {
  const name = await made()
  const states = openTransportStates({ db: service.db, clock: systemClock, log: silentLog, processId: 'one' })
  const shown = async () => (await call('GET', `/transports/${name}`)).body.data
  states.down({ transport: name, tenantId: '', revision: 1, reason: 'failed' }, 30_000)
  states.down({ transport: name, tenantId: service.tenantId, revision: 1, reason: 'refused' }, 30_000)
  await expect.poll(shown).toMatchObject({
    state: 'down',
    down: [
      { tenantId: null, reason: 'failed' },
      { tenantId: service.tenantId, reason: 'refused' },
    ],
  })
  states.up(name, '')
  await expect.poll(shown).toMatchObject({ down: [{ tenantId: service.tenantId }] })
  await states.close()
  expect(await shown()).toMatchObject({ state: 'up', down: [] })
  await call('DELETE', `/transports/${name}`)
})
