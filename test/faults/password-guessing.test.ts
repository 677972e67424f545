/** Guessing of passwords: the cost for the attacker, and proof that other users can still sign in. */
import { type TOTP, URI } from 'otpauth'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openIds, type Refusal, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { openSessions, resetMember, SeveralMembers } from '#members'
import {
  ask,
  elsewhere,
  fromElsewhere,
  fromOurPages,
  invite,
  password,
  type Reply,
  signedIn,
  useLink,
} from '../dashboard/signed-in-browser.ts'
import { type Service, startService } from '../support/in-process-service.ts'

const deleteFailures = sql`
  delete from sign_in_failures`

// Each guess takes about 20 ms of one core.
vi.setConfig({ testTimeout: 120_000 })

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' } })
})
afterAll(() => service.stop())

const openOne = (clock = systemClock) => openSessions({ db: service.db, clock, ids: openIds(systemRandom), secrets: service.secrets })
const codeOfRefusal = (error: unknown) => (error as Refusal).code
const tried = (work: Promise<unknown>) => work.then(() => 'in', codeOfRefusal)
const signIn = (address: string, chosen: string, headers: Record<string, string>, more: object = {}) =>
  ask(service, 'POST', '/dashboard/api/sign-in', headers, { address, password: chosen, ...more })
const cookies = ({ headers }: Pick<Reply, 'headers'>) => headers.getSetCookie().map((one) => one.split(';')[0] ?? '')
const deviceOf = (reply: Reply) => cookies(reply).find((one) => one.startsWith('postrider-device=')) ?? ''

describe('an owner who makes a member of an address that is a member elsewhere', () => {
  const sessions = () => openOne()
  /**
   * Creates two members with this address: an owner of the tenant Theirs and a viewer of the tenant Own. `give` sets the second one's
   * password and returns the token of a device that it signed in on.
   */
  const twoMembers = async (address: string) => {
    const [theirs, own] = [await service.makeTenant('Theirs'), await service.makeTenant('Own')]
    await useLink(service, await invite(service, address, 'owner', theirs))
    await invite(service, address, 'viewer', own)
    const give = async (chosen: string) => {
      const facts = { nowMs: Date.now(), ids: openIds(systemRandom) }
      const { signInToken } = await service.db.transaction((tx) => resetMember(tx, address, own, facts))
      return (await sessions().useLink({ signInToken, password: chosen, network: 'of the owner' })).device
    }
    const guess = (chosen: string, network: string, more: object = {}) =>
      sessions()
        .signIn({ address, password: chosen, network, ...more })
        .then(
          ({ session }) => (session.tenantId === own ? 'own' : 'theirs'),
          (error: unknown) => (error instanceof SeveralMembers ? 'several' : codeOfRefusal(error)),
        )
    return { theirs, give, guess, known: (token: string) => sessions().knownDevice(token, address) }
  }

  test('has with its device no more tries than a stranger', async () => {
    const { theirs, give, guess, known } = await twoMembers('device-of-two@b.test')
    const told = []
    for (let n = 0; n < 4; n++) {
      const device = known(await give('the password of the owner'))
      expect(device).toBeDefined()
      for (let k = 0; k < 4; k++) told.push(await guess('wrong', '192.0.2.90', { device, tenantId: theirs }))
    }
    expect(told.filter((one) => one === 'authentication_required')).toHaveLength(10)
    expect(await guess(password, '192.0.2.90', { device: known(await give('the password of the owner')), tenantId: theirs })).toBe(
      'rate_limit_exceeded',
    )
    expect(await guess(password, '192.0.2.91', { tenantId: theirs })).toBe('theirs')
    // The same guess without a tenant.
    const device = known(await give('the password of the owner'))
    for (let n = 0; n < 6; n++) expect(await guess('wrong', '192.0.2.92', { device })).toBe('authentication_required')
    for (let n = 0; n < 6; n++) expect(await guess('the password of the owner', '192.0.2.92', { device })).toBe('own')
    expect(await guess(password, '192.0.2.92', { device })).toBe('authentication_required')
    expect(await guess(password, '192.0.2.93', { device })).toBe('theirs')
    await service.db.run(deleteFailures)
  })

  test('guesses when its member has the password that is tried, and learns nothing after ten', async () => {
    const { give, guess } = await twoMembers('password-of-two@b.test')
    await give(password)
    expect(await guess(password, '192.0.2.95')).toBe('several')
    for (let n = 0; n < 10; n++) {
      await give(`a guess ${n} of the owner`)
      expect(await guess(`a guess ${n} of the owner`, '192.0.2.95')).toBe('own')
    }
    await give(password)
    expect(await guess(password, '192.0.2.95')).toBe('own')
    expect(await guess(password, '192.0.2.96')).toBe('several')
    await service.db.run(deleteFailures)
  })
})

describe('strangers who guess', () => {
  test('lock no member out: the right password from a network without failures signs in, however many networks have failed', async () => {
    const address = 'besieged@house.test'
    await signedIn(service, address, 'owner')
    const processes = [openOne(), openOne(), openOne()]
    const guess = (n: number, word: string, network: string) =>
      tried((processes[n % 3] as (typeof processes)[0]).signIn({ address, password: word, network }))
    const told: string[] = []
    for (let n = 0; n < 24; n++)
      told.push(...(await Promise.all(Array.from({ length: 10 }, (_, k) => guess(k, 'wrong', `203.0.113.${n}`)))))
    // The first 100 guesses are checked from any network; after that, two from each network.
    const lookedAt = told.filter((one) => one === 'authentication_required').length
    expect(lookedAt).toBeGreaterThanOrEqual(100)
    expect(lookedAt).toBeLessThanOrEqual(100 + 2 * 24)
    for (const [n, network] of ['192.0.2.50', '192.0.2.51', '192.0.2.52'].entries()) {
      expect(await guess(n, 'mistyped', network)).toBe('authentication_required')
      expect(await guess(n, password, network)).toBe('in')
    }
    expect(await guess(0, password, '203.0.113.1')).toBe('rate_limit_exceeded')
    await service.db.run(deleteFailures)
  })

  test('with a whole /48 of IPv6 have as many tries as a site, and those of another /48 are not counted with them', async () => {
    const address = 'six@house.test'
    await signedIn(service, address, 'viewer')
    const from = (ip: string) => ({ ...fromOurPages, 'x-forwarded-for': ip })
    const told: number[] = []
    for (let n = 0; n < 30; n++) told.push((await signIn(address, 'wrong', from(`2001:db8:7:${n}::1`))).status)
    expect(told.filter((status) => status === 401)).toHaveLength(20)
    expect((await signIn(address, password, from('2001:db8:7:ffff::1'))).status).toBe(429)
    expect((await signIn(address, password, from('2001:db8:8::1'))).status).toBe(200)
    await service.db.run(deleteFailures)
  })

  test('in the network of a member do not keep out a member who signs in from a device that has done so before', async () => {
    const [address, other] = ['device@house.test', 'other@house.test']
    await signedIn(service, address, 'owner')
    await signedIn(service, other, 'owner')
    const device = deviceOf(await signIn(address, password, elsewhere()))
    expect(device).toMatch(/^postrider-device=[\w-]{65}\.\d+$/)
    const shared = { ...fromOurPages, 'x-forwarded-for': '192.0.2.77' }
    const sessions = openOne()
    for (let n = 0; n < 60; n++)
      await tried(sessions.signIn({ address: n % 2 ? address : other, password: 'wrong', network: '192.0.2.77' }))
    expect((await signIn(address, password, shared)).status).toBe(429)
    expect((await signIn(address, password, { ...shared, cookie: device })).status).toBe(200)
    // The device token is valid for one address only, cannot be forged, and has ten tries of its own.
    expect((await signIn(other, password, { ...shared, cookie: device })).status).toBe(429)
    const [name = '', token = ''] = device.split('=')
    const [tagged = '', id = ''] = token.split('.')
    const forged = [
      `${tagged.slice(0, -2)}${tagged.endsWith('AA') ? 'BB' : 'AA'}.${id}`,
      `${tagged}.${Number(id) + 1}`,
      `${tagged}.0${id}`,
      tagged,
    ]
    for (const one of forged) expect((await signIn(address, password, { ...shared, cookie: `${name}=${one}` })).status).toBe(429)
    const known = sessions.knownDevice(token, address)
    expect(known).toBeDefined()
    const withDevice = (word: string) => tried(sessions.signIn({ address, password: word, network: '192.0.2.77', device: known }))
    for (let n = 0; n < 10; n++) expect(await withDevice('wrong')).toBe('authentication_required')
    expect(await withDevice(password)).toBe('rate_limit_exceeded')
    await service.db.run(deleteFailures)
  })

  test('learn nothing by time: an address without a member takes as long as one that has members', async () => {
    await signedIn(service, 'timed@house.test', 'viewer')
    const tenantId = await service.makeTenant('Second of the timed')
    await signedIn(service, 'timed@house.test', 'viewer', tenantId)
    const sessions = openOne()
    const spent = { timed: 0, nobody: 0 }
    for (let round = 0; round < 20; round++) {
      for (const who of ['timed', 'nobody'] as const) {
        const beganUs = process.cpuUsage()
        await tried(sessions.signIn({ address: `${who}@house.test`, password: 'wrong', network: `198.18.${round}.${who.length}` }))
        const { user, system } = process.cpuUsage(beganUs)
        spent[who] += user + system
      }
    }
    expect(spent.timed / spent.nobody).toBeGreaterThan(0.6)
    expect(spent.timed / spent.nobody).toBeLessThan(1.6)
    await service.db.run(deleteFailures)
  })

  test('who know the password, and use up the tries at codes, keep out neither a known device nor a recovery code', async () => {
    const address = 'leaked@house.test'
    const member = await signedIn(service, address, 'owner')
    const device = deviceOf(await signIn(address, password, elsewhere()))
    const post = (path: string, body: object) =>
      ask(service, 'POST', `/dashboard/api/second-factor${path}`, { ...member, ...fromElsewhere() }, body)
    const { uri } = (await post('/begin', { password })).data as { uri: string }
    const app = URI.parse(uri) as TOTP
    const codeOf = (steps: number) => app.generate({ timestamp: Date.now() + steps * 30_000 })
    const confirmed = await post('/confirm', { code: codeOf(0) })
    const { recoveryCodes } = confirmed.data as { recoveryCodes: string[] }
    const wrong = ['000000', '111111', '222222', '333333'].find((one) => app.validate({ token: one, window: 3 }) === null)
    const told = []
    for (let n = 0; n < 30; n++) told.push((await signIn(address, password, elsewhere(), { code: wrong })).status)
    expect(told.filter((status) => status === 401)).toHaveLength(20)
    expect((await signIn(address, password, elsewhere(), { code: codeOf(1) })).status).toBe(429)
    expect((await signIn(address, password, elsewhere(), { code: recoveryCodes[0] })).status).toBe(200)
    expect((await signIn(address, password, { ...elsewhere(), cookie: device }, { code: codeOf(1) })).status).toBe(200)
  })
})
