/**
 * A simulated world for DKIM rotation: name servers of which one lags, resolvers that cache and fail, customers with CNAME or TXT records, and
 * receivers that verify with caches of their own. The rotation, its database and the signatures are the real ones.
 */
import { generateKeyPairSync } from 'node:crypto'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { type Clock, type Ids, openIds, openSecrets, silentLog, systemRandom } from '#base'
import { type Db, sql } from '#db'
import { makeEd25519Key, signatureFields } from '#dkim'
import {
  addDomain,
  type Domain,
  keyRetentionMs,
  listDkimTargets,
  listDomainKeys,
  listDomains,
  makeDomain,
  openDomains,
  type RotationDeps,
  rotateDueDomains,
} from '#domains'
import type { DnsAnswer } from '#net'
import { createOrganisation } from '#tenants'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** Of 30 attempts. */
const longestRetriesMs = 4.66 * dayMs
const hostname = 'mail.host.example'

const makeVerified = sql`
  update domains
  set dkim_status = 'OK', dkim_ed25519_status = 'OK', return_path_status = 'OK', spf_status = 'OK'`

const aliasesOf = sql<{ id: number; name: string; selector: string }>`
  select id, name, selector
  from domains
  order by id`

type RecordKind = 'TXT' | 'CNAME'
interface Version {
  sinceMs: number
  value: string | null
}

/** The present and past records of the primary name servers of all zones: one of two name servers shows the past. */
class Names {
  readonly #versions = new Map<string, Version[]>()
  readonly #lagMs: number

  constructor(lagMs: number) {
    this.#lagMs = lagMs
  }

  set(name: string, kind: RecordKind, value: string | null, nowMs: number): void {
    const versions = this.#versions.get(`${kind} ${name}`) ?? []
    if ((versions.at(-1)?.value ?? null) === value) return
    versions.push({ sinceMs: nowMs, value })
    this.#versions.set(`${kind} ${name}`, versions)
  }

  read(name: string, kind: RecordKind, nowMs: number, isSecondary: boolean): string | null {
    const atMs = isSecondary ? nowMs - this.#lagMs : nowMs
    return this.#versions.get(`${kind} ${name}`)?.findLast(({ sinceMs }) => sinceMs <= atMs)?.value ?? null
  }
}

const foundTtlMs = hourMs
const absentTtlMs = 3 * hourMs

/** A recursive resolver with a cache. */
class CachingResolver {
  readonly #cache = new Map<string, { value: string | null; untilMs: number }>()
  readonly #names: Names
  readonly #clock: Clock
  readonly #random: () => number
  readonly #failures: number

  constructor(names: Names, clock: Clock, random: () => number, failures: number) {
    this.#names = names
    this.#clock = clock
    this.#random = random
    this.#failures = failures
  }

  /** Undefined: the query failed. */
  query(name: string, kind: RecordKind): string | null | undefined {
    const nowMs = this.#clock.nowMs()
    const known = this.#cache.get(`${kind} ${name}`)
    if (known && nowMs < known.untilMs) return known.value
    if (this.#random() < this.#failures) return undefined
    const value = this.#names.read(name, kind, nowMs, this.#random() < 0.5)
    this.#cache.set(`${kind} ${name}`, { value, untilMs: nowMs + (value === null ? absentTtlMs : foundTtlMs) })
    return value
  }

  /** Follows one alias. */
  text(name: string): string | null | undefined {
    const alias = this.query(name, 'CNAME')
    return alias === undefined ? undefined : this.query(alias ?? name, 'TXT')
  }

  answer(value: string | null | undefined): DnsAnswer<string[]> {
    if (value === undefined) return { kind: 'trouble', code: 'SERVFAIL' }
    return value === null ? { kind: 'nxdomain' } : { kind: 'found', value: [value] }
  }

  readonly txt = async (name: string): Promise<DnsAnswer<string[]>> => this.answer(this.text(name))
  readonly cname = async (name: string): Promise<DnsAnswer<string[]>> => this.answer(this.query(name, 'CNAME'))
  readonly mx = async (): Promise<{ kind: 'none' }> => ({ kind: 'none' })
}

export interface WorldOptions {
  db: Db
  /** Of both kinds: every third publishes TXT records, with delays. */
  domains: number
  weeks: number
  /** The rotation has its turn, customers publish, and mail is sent, this often. */
  everyHours: number
  /** Messages that are signed and verified each time. */
  mail: number
  keepMs?: number
  seed: number
}

export interface WorldResult {
  rotations: number
  /** By the kind of the domain. */
  rotationsOf: { cname: number; txt: number }
  verified: number
  /** Signatures that a verifier failed, with the time in days. */
  failures: string[]
}

/** mulberry32 */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Short keys, so that a year does not consist of key generation; neighbours of a domain are never equal. */
function keyMaker(): NonNullable<RotationDeps['makeKeys']> {
  const pool = Array.from({ length: 23 }, () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
    return {
      privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
    }
  })
  let next = 0
  return async () => ({ rsa: pool[next++ % pool.length] as (typeof pool)[number], ed25519: makeEd25519Key() })
}

interface SignedMail {
  octets: Buffer
  sentMs: number
  domain: string
}

export class RotationWorld {
  readonly #options: WorldOptions
  readonly #names = new Names(6 * hourMs)
  readonly #random: () => number
  readonly #startMs = Date.UTC(2027, 0, 1)
  #nowMs = this.#startMs
  readonly #ids: Ids = openIds(systemRandom)
  readonly #secrets = openSecrets('a secret for the simulated year', systemRandom)
  readonly clock: Clock = { nowMs: () => this.#nowMs, monotonicMs: () => this.#nowMs, after: () => () => undefined }
  readonly #verifiers: CachingResolver[]
  readonly #rotation: RotationDeps
  #sending: Domain[] = []
  /** Verified again when their time has come. */
  readonly #later = new Map<number, SignedMail[]>()
  readonly #asked = new Map<string, number>()
  readonly #result: WorldResult = { rotations: 0, rotationsOf: { cname: 0, txt: 0 }, verified: 0, failures: [] }

  constructor(options: WorldOptions) {
    this.#options = options
    this.#random = seeded(options.seed)
    const resolver = (failures: number) => new CachingResolver(this.#names, this.clock, this.#random, failures)
    this.#verifiers = Array.from({ length: 5 }, () => resolver(0))
    this.#rotation = {
      db: options.db,
      clock: this.clock,
      ids: this.#ids,
      secrets: this.#secrets,
      log: silentLog,
      resolvers: [resolver(0.05), resolver(0.2)],
      hostname,
      schedule: { everyMs: 7 * dayMs, alsoTxt: true },
      writesDns: true,
      keepMs: options.keepMs ?? keyRetentionMs(longestRetriesMs),
      makeKeys: keyMaker(),
    }
  }

  #isTxt = ({ name }: { name: string }) => Number(/\d+/.exec(name)?.[0]) % 3 === 2

  async run(): Promise<WorldResult> {
    const { db, weeks, everyHours, mail: count } = this.#options
    await this.#begin()
    const domains = openDomains({ db, clock: this.clock, secrets: this.#secrets })
    for (let hour = 0; hour < weeks * 7 * 24; hour += everyHours) {
      this.#nowMs = this.#startMs + hour * hourMs
      while ((await rotateDueDomains(this.#rotation)) > 0);
      // The platform's DNS is down for a day in each 30.
      if (hour % 720 > 24) await this.#publish()
      for (let nth = 0; nth < count; nth++) {
        const mail = await this.#sign(domains)
        await this.#verify(mail)
        this.#verifyLater(mail)
      }
      for (const [at, mails] of this.#later) {
        if (at > hour) continue
        for (const mail of mails) await this.#verify(mail)
        this.#later.delete(at)
      }
    }
    return this.#result
  }

  async #begin(): Promise<void> {
    const { db, domains } = this.#options
    const facts = { nowMs: this.#nowMs, ids: this.#ids, secrets: this.#secrets }
    const tenant = await db.transaction((tx) =>
      createOrganisation(tx, { name: 'House', secretFingerprint: this.#secrets.fingerprint, ...facts }),
    )
    for (let nth = 0; nth < domains; nth++) {
      const made = await makeDomain({ tenantId: tenant.id, name: `d${nth}.example`, trusted: true }, facts)
      await db.transaction((tx) => addDomain(tx, made))
    }
    await db.run(makeVerified)
    this.#sending = await listDomains(db, null)
    const longAgoMs = this.#nowMs - 30 * dayMs
    for (const { name, rsaPublic, ed25519Public, selector } of this.#sending.filter(this.#isTxt)) {
      this.#names.set(`${selector}._domainkey.${name}`, 'TXT', `v=DKIM1; k=rsa; p=${rsaPublic}`, longAgoMs)
      this.#names.set(`${selector}-ed._domainkey.${name}`, 'TXT', `v=DKIM1; k=ed25519; p=${ed25519Public}`, longAgoMs)
    }
    for (const { id, name, selector } of await db.rows(aliasesOf)) {
      if (this.#isTxt({ name })) continue
      for (const one of [selector, `${selector}-2`, `${selector}-ed`, `${selector}-2-ed`])
        this.#names.set(`${one}._domainkey.${name}`, 'CNAME', `${one}.${id}.dkim.${hostname}`, longAgoMs)
    }
    for (const { name, value } of await listDkimTargets(db, hostname)) this.#names.set(name, 'TXT', value, longAgoMs)
  }

  /** The platform's records follow at once, those of customers with TXT records within two days; every tenth forgets the Ed25519 record. */
  async #publish(): Promise<void> {
    const { db } = this.#options
    const targets = new Map((await listDkimTargets(db, hostname)).map(({ name, value }) => [name, value]))
    for (const [name, value] of targets) this.#names.set(name, 'TXT', value, this.#nowMs)
    for (const name of this.#published) if (!targets.has(name)) this.#names.set(name, 'TXT', null, this.#nowMs)
    this.#published = [...targets.keys()]
    for (const domain of await listDomainKeys(db, null)) this.#follow(domain)
  }

  #published: string[] = []

  #follow({ id, name, selector, nextRecords, others }: Awaited<ReturnType<typeof listDomainKeys>>[number]): void {
    const before = this.#present.get(id)
    if (before !== undefined && before !== selector) {
      this.#result.rotations++
      this.#result.rotationsOf[this.#isTxt({ name }) ? 'txt' : 'cname']++
    }
    this.#present.set(id, selector)
    if (!this.#isTxt({ name })) return
    for (const [nth, { fullName, value }] of nextRecords.entries()) {
      const askedMs = this.#asked.get(fullName) ?? this.#nowMs + this.#random() * 48 * hourMs
      this.#asked.set(fullName, askedMs)
      const forgets = nth === 1 && id % 10 === 0
      if (askedMs <= this.#nowMs && !forgets) this.#names.set(fullName, 'TXT', value, this.#nowMs)
    }
    // The customer tidies up as soon as the list of keys no longer has a selector.
    const listed = [selector, ...others.map((one) => one.selector)]
    for (const old of (this.#listed.get(id) ?? []).filter((one) => !listed.includes(one)))
      for (const one of [old, `${old}-ed`]) this.#names.set(`${one}._domainkey.${name}`, 'TXT', null, this.#nowMs)
    this.#listed.set(id, listed)
  }

  readonly #present = new Map<number, string>()
  readonly #listed = new Map<number, string[]>()

  async #sign(domains: ReturnType<typeof openDomains>): Promise<SignedMail> {
    const { id, tenantId, name } = this.#sending[Math.floor(this.#random() * this.#sending.length)] as Domain
    const message = Buffer.from(
      `From: a@${name}\r\nTo: b@there.example\r\nSubject: hello\r\nDate: Fri, 01 Jan 2027 00:00:00 +0000\r\nMessage-ID: <${this.#nowMs}@${name}>\r\n\r\nHello\r\n`,
    )
    const keys = (await domains.signingKeys(tenantId, id, true)) ?? []
    const signatures = await signatureFields(message, keys, this.#nowMs)
    return { octets: Buffer.concat([Buffer.from(signatures), message]), sentMs: this.#nowMs, domain: name }
  }

  /** At an hour within the retries of a relay or a receiver that delays it. */
  #verifyLater(mail: SignedMail): void {
    const hour = Math.round((mail.sentMs - this.#startMs) / hourMs) + 1 + Math.floor((this.#random() * longestRetriesMs) / hourMs)
    this.#later.set(hour, [...(this.#later.get(hour) ?? []), mail])
  }

  async #verify({ octets, sentMs, domain }: SignedMail): Promise<void> {
    const verifier = this.#verifiers[Math.floor(this.#random() * this.#verifiers.length)] as CachingResolver
    const resolver = async (name: string) => {
      const text = verifier.text(name)
      if (text === null || text === undefined) throw Object.assign(new Error(name), { code: 'ENOTFOUND' })
      return [[text]]
    }
    const { results } = (await dkimVerify(octets, { resolver, curTime: new Date(this.#nowMs) })) as {
      results: { algo: string; status: { result: string }; selector: string }[]
    }
    this.#result.verified++
    const days = (ms: number) => ((ms - this.#startMs) / dayMs).toFixed(2)
    if (results.length === 0) this.#result.failures.push(`${domain} day ${days(sentMs)}: not signed`)
    for (const { algo, selector, status } of results)
      if (status.result !== 'pass')
        this.#result.failures.push(
          `${domain} signed on day ${days(sentMs)}, verified on ${days(this.#nowMs)}: ${selector} ${algo} ${status.result}`,
        )
  }
}
