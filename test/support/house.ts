/**
 * A real service in this process, on a database of its own and on its own port, for tests of the whole house: nothing is a stand-in
 * but the outside. It stops by `stop()` or with `await using`.
 */
import { openAccept, openCommit } from '#accept'
import { type Network, openIds, openSecrets, pause, silentLog, systemClock, systemRandom } from '#base'
import { createKey, openCredentials, type Permission } from '#credentials'
import type { Db } from '#db'
import { addDomain, openDomains } from '#domains'
import { type HttpDeps, startHttp } from '#http'
import { openLimitSettings, openRateLimiter } from '#limits'
import { addTenant, foundOrganisation, openTenants } from '#tenants'
import { openTestDatabase } from './database.ts'

export interface Wish {
  /** Requests per second of a key; null is unlimited. */
  rateLimit?: number | null
  /** Emails per hour; null is unlimited. */
  sendLimit?: number | null
  bounds?: HttpDeps['bounds']
  trustedProxies?: Network[]
}

interface ErrorBody {
  code: string
  message: string
  suggestion: string
  field?: string
  details?: { field: string; message: string }[]
}

/** A body of the API, whatever it answers. */
interface Body {
  success: boolean
  data?: unknown
  page?: number
  perPage?: number
  total?: number
  totalPages?: number
  error?: ErrorBody
  meta: { requestId: string }
}

export interface Answer {
  status: number
  headers: Headers
  text: string
  body: Body
}

export interface Asked {
  key?: string
  /** Sent as JSON. */
  body?: object | undefined
  /** Sent as it is. */
  raw?: string | Buffer
  headers?: Record<string, string>
}

export interface House extends AsyncDisposable {
  port: number
  db: Db
  /** The default tenant, which has the sending domain simulator.test. */
  tenantId: string
  testKey: string
  liveKey: string
  /** Asks the API; `path` is below /v1. */
  call(method: string, path: string, asked: Asked): Promise<Answer>
  /** A test key with these limits. */
  makeKey(limited: { tenantId?: string; permissions?: Permission[] }): Promise<string>
  makeTenant(name: string): Promise<string>
  /** Lets this much time pass. */
  wait(delayMs: number): Promise<void>
  stop(): Promise<void>
}

const hostname = 'house.test'
const secret = 'a secret for tests only'

export async function startHouse(wish: Wish = {}): Promise<House> {
  const { rateLimit = 10, sendLimit = 100 } = wish
  const clock = systemClock
  const ids = openIds(systemRandom)
  const secrets = openSecrets(secret, systemRandom)
  const database = await openTestDatabase()
  const { db } = database

  const nowMs = clock.nowMs()
  const tenant = await db.transaction((tx) => foundOrganisation(tx, { name: 'House', secretFingerprint: secrets.fingerprint, nowMs, ids }))
  await addDomain(db, { tenantId: tenant.id, name: 'simulator.test', trusted: true }, { nowMs, ids, secrets })
  const keyOf = async (mode: 'live' | 'test', limited: { tenantId?: string; permissions?: Permission[] } = {}) => {
    const wanted = { mode, name: 'test', tenantId: limited.tenantId ?? null, permissions: limited.permissions ?? null }
    return (await createKey(db, wanted, { nowMs: clock.nowMs(), ids })).key
  }
  const testKey = await keyOf('test')
  const liveKey = await keyOf('live')

  const tenants = openTenants({ db, clock })
  const domains = openDomains({ db, clock, secrets })
  const limitSettings = openLimitSettings({ db, clock, config: { rateLimit, sendLimit } })
  const http = await startHttp({
    db,
    clock,
    ids,
    log: silentLog,
    tenants,
    domains,
    limitSettings,
    credentials: openCredentials({ db, clock }),
    rateLimiter: openRateLimiter(clock),
    accept: openAccept({ db, clock, ids, tenants, domains, limitSettings, sandboxSender: `sandbox@${hostname}`, hostname, commit: openCommit({ db, clock, limitSettings }) }),
    ready: () => true,
    config: { host: '127.0.0.1', port: 0, trustedProxies: wish.trustedProxies ?? [], rateLimit, maxAttempts: 30, metricsToken: undefined },
    ...(wish.bounds ? { bounds: wish.bounds } : {}),
  })

  const stop = async () => {
    await http.stop()
    await database.close()
  }
  return {
    port: http.port,
    db,
    tenantId: tenant.id,
    testKey,
    liveKey,
    call: (method, path, asked) => ask(`http://127.0.0.1:${http.port}/v1${path}`, method, asked),
    makeKey: (limited) => keyOf('test', limited),
    makeTenant: async (name) => (await addTenant(db, name, { nowMs: clock.nowMs(), ids })).id,
    wait: (delayMs) => pause(clock, delayMs),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

async function ask(url: string, method: string, { key, body, raw, headers = {} }: Asked): Promise<Answer> {
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const answer = await fetch(url, {
    method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(payload === undefined ? {} : { body: payload as string }),
  })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, text, body: text === '' ? ({} as Body) : (JSON.parse(text) as Body) }
}
