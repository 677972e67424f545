/** The installation's keys over time: a process that signs and one that publishes, by a clock that is moved by hand. */
import { createPublicKey, type JsonWebKey, verify } from 'node:crypto'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { openIds, readConfig, systemRandom } from '#base'
import type { Db } from '#db'
import { listAudit } from '#members'
import { openTenants } from '#tenants'
import { openForward, openWebhooks, rotateInstallationKey } from '#webhooks'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { runHere } from '../support/run-command.ts'
import { type HandMoved, handMoved } from '../support/test-clock.ts'
import { type Received, type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { loopbackPost, sendingSecrets as secrets, sendingConfig } from '../support/webhook-sender-parts.ts'

const ids = openIds(systemRandom)
const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

let database: TestDatabase
let receiver: Receiver
let clock: HandMoved
beforeEach(async () => {
  database = await testDatabase()
  receiver = await startReceiver()
  clock = handMoved()
  onTestFinished(async () => {
    await receiver[Symbol.asyncDispose]()
    await database.close()
  })
})

/** One process's own objects; each process reads the database separately. */
function openProcess(db: Db = database.db) {
  const deps = { db, clock, ids, random: systemRandom, secrets, post: loopbackPost(), config: sendingConfig, version: 'test' }
  const webhooks = openWebhooks({ ...deps, tenants: openTenants({ db, clock }) })
  const forward = openForward(receiver.url, deps)
  const event = {
    event: 'MessageSent' as const,
    tenantId: 't',
    timestamp: 1,
    payload: {},
    position: { xact: '1', id: 1 },
    uuid: ids.uuid(),
  }
  return {
    published: async () => (await webhooks.jwks()).keys,
    async sign(): Promise<Received> {
      await forward.send(event)
      return receiver.received.at(-1) as Received
    },
  }
}

type Keys = Awaited<ReturnType<ReturnType<typeof openProcess>['published']>>
const kidsOf = (keys: Keys) => keys.map(({ kid }) => kid)
const kidOf = ({ headers }: Received) => String(headers['x-webhook-signature-kid'])

function isGenuine(request: Received, keys: Keys): boolean {
  const key = keys.find(({ kid }) => kid === kidOf(request))
  const signature = Buffer.from(String(request.headers['x-webhook-signature']), 'base64')
  return (
    key !== undefined && verify('RSA-SHA256', request.body, createPublicKey({ key: { ...key } as JsonWebKey, format: 'jwk' }), signature)
  )
}

const rotate = () => rotateInstallationKey({ db: database.db, clock, secrets })

describe('a key that replaces another', () => {
  test('is published at once, signs two hours later, and the old one can be checked for 31 days more', async () => {
    const [signer, publisher] = [openProcess(), openProcess()]
    const before = await signer.sign()
    const old = kidOf(before)
    clock.moveMs(dayMs)
    expect(kidsOf(await publisher.published())).toEqual([old])
    const { kid, signsFrom } = await rotate()
    expect(signsFrom.getTime()).toBe(clock.nowMs() + 2 * hourMs)

    clock.moveMs(minuteMs)
    expect(kidsOf(await publisher.published())).toEqual([old, kid])
    const held: { atMs: number; keys: Keys }[] = []
    const signed: Received[] = [before]
    for (let step = 0; step < 30; step++) {
      const keys = await publisher.published()
      held.push({ atMs: clock.nowMs(), keys })
      const request = await signer.sign()
      expect(kidOf(request)).toBe(clock.nowMs() < signsFrom.getTime() ? old : kid)
      // A receiver that last fetched the keys up to an hour ago.
      for (const { keys } of held.filter(({ atMs }) => clock.nowMs() - atMs <= hourMs)) expect(isGenuine(request, keys)).toBe(true)
      signed.push(request)
      clock.moveMs(7 * minuteMs)
    }
    expect(new Set(signed.map(kidOf))).toEqual(new Set([old, kid]))

    clock.moveMs(signsFrom.getTime() + 31 * dayMs - 1 - clock.nowMs())
    const last = await publisher.published()
    expect(kidsOf(last)).toEqual([kid, old])
    expect(signed.every((request) => isGenuine(request, last))).toBe(true)
    clock.moveMs(1)
    expect(kidsOf(await publisher.published())).toEqual([kid])
    expect(isGenuine(await signer.sign(), await openProcess().published())).toBe(true)
  })

  test('is replaced in its turn, in the order in which they were made, even where a clock was set back', async () => {
    const old = kidOf(await openProcess().sign())
    clock.moveMs(2 * dayMs)
    const first = await rotate()
    const behind = { ...clock, nowMs: () => clock.nowMs() - dayMs }
    const second = await rotateInstallationKey({ db: database.db, clock: behind, secrets })
    expect(second.signsFrom.getTime()).toBeGreaterThan(first.signsFrom.getTime())
    expect(kidsOf(await openProcess().published())).toEqual([old, second.kid, first.kid])
    clock.moveMs(2 * hourMs)
    expect(kidOf(await openProcess().sign())).toBe(first.kid)
    clock.moveMs(1)
    expect(kidOf(await openProcess().sign())).toBe(second.kid)
  })

  test('signs at once where there was none', async () => {
    const { kid, signsFrom } = await rotate()
    expect(signsFrom.getTime()).toBe(clock.nowMs())
    expect(kidOf(await openProcess().sign())).toBe(kid)
  })

  test('is made by a command, which the audit log records', async () => {
    const printed: string[] = []
    const old = kidOf(await openProcess().sign())
    clock.moveMs(dayMs)
    const code = await runHere(['webhook', 'rotate-key', '--json'], {
      environment: { USER: 'ann' },
      withInstallation: (work) =>
        work({ config: readConfig({}), db: database.db, clock, ids, random: systemRandom, secrets, version: 'test' }),
      print: (text) => printed.push(text),
    })
    expect(code).toBe(0)
    const { kid, signsFrom } = JSON.parse(printed.join('')) as { kid: string; signsFrom: string }
    expect(Date.parse(signsFrom)).toBe(clock.nowMs() + 2 * hourMs)
    expect(kidsOf(await openProcess().published())).toEqual([old, kid])
    const { entries } = await listAudit(database.db, { tenantId: null }, { number: 1, size: 10 })
    expect(entries).toMatchObject([{ action: 'webhook.rotate-key', actor: { kind: 'command', name: 'ann' } }])
  })
})

describe('without a database', () => {
  test('a process goes on with its last keys, waits for no answer longer than two seconds, and asks again after a minute', async () => {
    let asked = 0
    const asUsual: Db['rows'] = (statement, parameters) => database.db.rows(statement, parameters)
    let rows = asUsual
    const one = openProcess({
      ...database.db,
      rows: (statement, parameters) => {
        asked++
        return rows(statement, parameters)
      },
    })
    const before = kidsOf(await one.published())
    const { kid } = await rotate()
    rows = () => Promise.reject(new Error('away'))
    asked = 0
    clock.moveMs(minuteMs)
    for (let time = 0; time < 5; time++) expect(kidsOf(await one.published())).toEqual(before)
    expect(asked).toBe(1)

    rows = () => new Promise<never>(() => undefined)
    clock.moveMs(minuteMs)
    const waiting = one.published()
    clock.moveMs(2000)
    expect(kidsOf(await waiting)).toEqual(before)

    rows = asUsual
    clock.moveMs(minuteMs)
    expect(kidsOf(await one.published())).toEqual([...before, kid])
  })

  test('a process that has none logs so, and gets them when the database is back', async () => {
    let isAway = true
    const rows: Db['rows'] = (statement, parameters) =>
      isAway ? Promise.reject(new Error('away')) : database.db.rows(statement, parameters)
    const one = openProcess({ ...database.db, rows })
    await expect(one.published()).rejects.toThrow('away')
    isAway = false
    expect(await one.published()).toHaveLength(1)
  })
})
