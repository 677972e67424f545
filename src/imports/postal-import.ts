/**
 * Compares a plan of Postal's records with this installation, and with `apply` writes the missing ones, tenant by tenant. Every step finds
 * its own earlier result, so the import may be repeated and interrupted.
 */
import type { AcceptMoved } from '#accept'
import { type Clock, type Ids, type Random, Refusal, type Secrets } from '#base'
import { findImportedKeys, importCredential } from '#credentials'
import type { Db } from '#db'
import { addSource, assignPool, canBind, listAssignments, listSources } from '#delivery'
import { addDomain, type Domain, listDomains, makeDomain } from '#domains'
import { listLimits, setLimits, tenantLimitScope } from '#limits'
import { addMember, listMembersOf } from '#members'
import { importSuppressions } from '#suppressions'
import { addTenant, changeTenant, listTenants, setPause, type Tenant } from '#tenants'
import { addTrackDomain, listTrackDomains } from '#tracking'
import type { Webhooks } from '#webhooks'
import { MessageImport } from './postal-message-import.ts'
import { type Note, type PlannedTenant, type PostalPlan, planPostal } from './postal-plan.ts'
import { refuseWhilePostalSends } from './postal-queue.ts'
import type { PostalSource, Row } from './postal-source.ts'

export interface ImportDeps {
  db: Db
  clock: Clock
  ids: Ids
  random: Random
  secrets: Secrets
  webhooks: Webhooks
  acceptMoved: AcceptMoved
  /** Emails are kept so long. */
  keepEmailDays: number
}

export interface ImportOptions {
  /** false: only compares. */
  apply: boolean
  dkimIdentifier: string
  /** Also brings the messages that Postal has not sent yet. */
  queued?: boolean
  /** Also brings records of the messages from this time on that Postal is done with. */
  historySince?: Date | undefined
  /** Called before each server. */
  progress(state: string): void
}

/** `missing`: not in this installation before the run; with `apply` they were added, except `failed`. */
export interface KindCount {
  found: number
  missing: number
  failed: number
}

const kinds = [
  'tenants',
  'members',
  'domains',
  'track domains',
  'credentials',
  'webhooks',
  'suppressions',
  'send limits',
  'IP addresses',
] as const
type Kind = (typeof kinds)[number]
/** Only on request. */
type MessageKind = 'queued messages' | 'history'

export interface ImportReport {
  counts: Record<Kind, KindCount> & Partial<Record<MessageKind, KindCount>>
  notes: Note[]
}

const tenantKey = 'postal_server'
const developmentReason = 'development mode in Postal: mail is held'
const pageSize = 100

/** Reads the source and compares; with `apply` also writes. Refusals of single records become notes. */
export async function importPostal(source: PostalSource, deps: ImportDeps, options: ImportOptions): Promise<ImportReport> {
  options.progress('reading the main database of Postal')
  if (options.queued && options.apply) await refuseWhilePostalSends(source)
  const plan = planPostal(await source.main(), options)
  const run = new Import(plan, source, deps, options)
  return run.all()
}

class Import {
  readonly #plan: PostalPlan
  readonly #source: PostalSource
  readonly #deps: ImportDeps
  readonly #options: ImportOptions
  readonly #report: ImportReport

  constructor(plan: PostalPlan, source: PostalSource, deps: ImportDeps, options: ImportOptions) {
    this.#plan = plan
    this.#source = source
    this.#deps = deps
    this.#options = options
    const counts = Object.fromEntries(kinds.map((kind) => [kind, { found: 0, missing: 0, failed: 0 }])) as ImportReport['counts']
    this.#report = { counts, notes: [...plan.notes] }
  }

  async all(): Promise<ImportReport> {
    const { tenants } = this.#plan
    const known = await tenantsByServer(this.#deps.db)
    const messages = new MessageImport(this.#source, this.#deps, this.#options, this.#report)
    await this.#addresses()
    await this.#members(null, '', this.#plan.members)
    for (const [index, planned] of tenants.entries()) {
      this.#options.progress(`server ${index + 1} of ${tenants.length}: ${planned.name}`)
      const tenant = await this.#tenant(planned, known.get(planned.uuid))
      // Without its tenant, which was refused, these records cannot come.
      if (!tenant && this.#options.apply) continue
      await this.#ofTenant(planned, tenant)
      await messages.ofServer(planned, tenant?.id)
    }
    return this.#report
  }

  /** Counts a record, and with `apply` adds it if it is missing. Returns whether it is there afterwards. */
  async #each(kind: Kind, name: string, isThere: boolean, add: () => Promise<unknown>): Promise<boolean> {
    const count = this.#report.counts[kind]
    count.found++
    if (isThere) return true
    count.missing++
    if (!this.#options.apply) return false
    try {
      await add()
      return true
    } catch (error) {
      this.#report.notes.push({ about: kind, name, text: `did not come: ${refusalOf(error)}` })
      count.failed++
      return false
    }
  }

  async #addresses(): Promise<void> {
    const { db, clock } = this.#deps
    const there = new Set((await listSources(db)).map(({ address }) => address))
    for (const { address, pool, ehloName } of this.#plan.addresses) {
      if (!there.has(address) && !(await canBind(address))) {
        const advice = `this machine does not have it. When it has: postrider source add ${address} --pool ${pool}`
        this.#report.notes.push({ about: 'IP addresses', name: address, text: advice })
        continue
      }
      await this.#each('IP addresses', address, there.has(address), () =>
        addSource(db, { address, ehloName, pool, warmUp: 'none' }, clock.nowMs()),
      )
    }
  }

  /** undefined: only compared, and not there. */
  async #tenant(planned: PlannedTenant, known: Tenant | undefined): Promise<Tenant | undefined> {
    let tenant = known
    await this.#each('tenants', planned.name, known !== undefined, async () => {
      tenant = await this.#addTenant(planned)
    })
    return tenant
  }

  /** In one transaction: an interruption must not leave a tenant that sends although it was suspended in Postal. */
  async #addTenant({ uuid, name, organization, permalink, token, suspended, development }: PlannedTenant): Promise<Tenant> {
    const { db, clock, ids } = this.#deps
    const nowMs = clock.nowMs()
    const returnPath = token === '' ? {} : { postal_return_path: token }
    const metadata = { [tenantKey]: uuid, postal_organization: organization, postal_permalink: permalink, ...returnPath }
    return db.transaction(async (tx) => {
      const tenant = await addTenant(tx, { name, metadata }, { nowMs, ids })
      if (suspended) await changeTenant(tx, tenant.id, { status: 'suspended' }, nowMs)
      if (development) await setPause(tx, tenant.id, developmentReason, nowMs)
      return tenant
    })
  }

  async #ofTenant(planned: PlannedTenant, tenant: Tenant | undefined): Promise<void> {
    await this.#domains(planned, tenant)
    await this.#credentials(planned, tenant)
    await this.#webhooks(planned, tenant)
    await this.#members(tenant?.id, planned.name, planned.members)
    await this.#limits(planned, tenant)
    await this.#suppressions(planned, tenant)
  }

  async #domains({ name: of, domains, trackDomains }: PlannedTenant, tenant: Tenant | undefined): Promise<void> {
    const { db, clock, ids, secrets } = this.#deps
    const there = new Map<string, Pick<Domain, 'id'>>()
    if (tenant) for (const one of await listDomains(db, tenant.id)) there.set(one.name, one)
    for (const { name, ownKey, verified } of domains)
      await this.#each('domains', `${name} of ${of}`, there.has(name), async () => {
        const wanted = { tenantId: (tenant as Tenant).id, name, trusted: verified, ownKey }
        const made = await makeDomain(wanted, { nowMs: clock.nowMs(), ids, secrets })
        there.set(name, await db.transaction((tx) => addDomain(tx, made)))
      })
    const tracks = new Set(tenant ? (await listTrackDomains(db, tenant.id)).map(({ fullName }) => fullName) : [])
    for (const { domain, ...track } of trackDomains) {
      const fullName = `${track.name}.${domain}`
      await this.#each('track domains', `${fullName} of ${of}`, tracks.has(fullName), async () => {
        const found = there.get(domain)
        if (!found) throw new Refusal('not_found', { message: `its domain ${domain} is not there` })
        await addTrackDomain(db, { ...track, domainId: found.id, tenantId: (tenant as Tenant).id }, { nowMs: clock.nowMs(), ids })
      })
    }
  }

  async #credentials({ name: of, credentials }: PlannedTenant, tenant: Tenant | undefined): Promise<void> {
    const { db, ids } = this.#deps
    const owners = await findImportedKeys(
      db,
      credentials.map(({ key }) => key),
    )
    for (const credential of credentials) {
      const name = `${credential.name} of ${of}`
      const owner = owners.get(credential.key)
      if (owner !== undefined && owner !== tenant?.id)
        this.#report.notes.push({ about: 'credentials', name, text: 'has a key that another tenant has already: it stays there' })
      await this.#each('credentials', name, owner !== undefined, () =>
        db.transaction((tx) => importCredential(tx, { ...credential, tenantId: (tenant as Tenant).id, from: 'postal' }, { ids })),
      )
    }
  }

  async #webhooks({ name: of, webhooks }: PlannedTenant, tenant: Tenant | undefined): Promise<void> {
    const keyOf = ({ name, url }: { name: string; url: string }) => `${name} ${url}`
    const there = new Set(tenant ? (await this.#deps.webhooks.list(tenant.id)).map(keyOf) : [])
    for (const webhook of webhooks)
      await this.#each('webhooks', `${webhook.name} of ${of}`, there.has(keyOf(webhook)), () =>
        this.#deps.webhooks.create((tenant as Tenant).id, { ...webhook, format: 'postal' }),
      )
  }

  /** `tenantId` null: of the organisation; undefined: of a tenant that is not there yet. */
  async #members(tenantId: string | null | undefined, of: string, members: PlannedTenant['members']): Promise<void> {
    const { db, clock, ids } = this.#deps
    const there = tenantId === undefined ? new Set<string>() : await listMembersOf(db, tenantId)
    for (const { address, role } of members)
      await this.#each('members', of === '' ? address : `${address} of ${of}`, there.has(address), () =>
        db.transaction((tx) => addMember(tx, { address, role, tenantId: tenantId as string | null }, { nowMs: clock.nowMs(), ids })),
      )
  }

  async #limits({ name, sendLimit, pool }: PlannedTenant, tenant: Tenant | undefined): Promise<void> {
    const { db, clock } = this.#deps
    if (sendLimit !== undefined && sendLimit > 0) {
      const limits = tenant ? await listLimits(db) : []
      const scope = tenantLimitScope(tenant?.id ?? '')
      await this.#each(
        'send limits',
        name,
        limits.some((one) => one.scope === scope),
        () => setLimits(db, scope, { sendPerHour: sendLimit }),
      )
    }
    if (!this.#options.apply || !tenant || pool === undefined) return
    const [sources, assignments] = [await listSources(db), await listAssignments(db)]
    if (!sources.some((one) => one.pool === pool) || assignments.some((one) => one.tenantId === tenant.id && one.tag === '')) return
    await assignPool(db, { tenantId: tenant.id, tag: '', pool }, clock.nowMs())
  }

  /** Entries of other types are of incoming mail. Those that have ended do not come. */
  async #suppressions({ serverId, name }: PlannedTenant, tenant: Tenant | undefined): Promise<void> {
    const count = this.#report.counts.suppressions
    const { apply } = this.#options
    if (!tenant) {
      const found = await this.#source.countSuppressions(serverId)
      count.found += found
      count.missing += found
      return
    }
    let failed = 0
    let refusal: string | undefined
    for await (const page of this.#source.suppressions(serverId)) {
      const entries = page.flatMap((row) => entryOf(row, this.#deps.clock.nowMs()))
      const result = await importSuppressions(this.#deps.db, tenant.id, entries, { dryRun: !apply }).catch(refusalOf)
      count.found += page.length
      if (typeof result === 'string') {
        refusal = result
        count.missing += entries.length
        if (apply) count.failed += entries.length
        continue
      }
      count.missing += result.added + result.failed
      failed += result.failed
      this.#options.progress(`${name}: ${count.found} suppressions`)
    }
    if (apply) count.failed += failed
    if (refusal !== undefined) this.#report.notes.push({ about: 'suppressions', name, text: `did not come: ${refusal}` })
    if (failed > 0) this.#report.notes.push({ about: 'suppressions', name, text: `${failed} entries are not email addresses` })
  }
}

/** The message of a refusal; throws other errors. */
function refusalOf(error: unknown): string {
  if (!(error instanceof Refusal)) throw error
  return error.message
}

/** Postal's servers among the tenants, by the server's uuid. */
async function tenantsByServer(db: Db): Promise<Map<string, Tenant>> {
  const found = new Map<string, Tenant>()
  for (let number = 1; ; number++) {
    const { tenants, total } = await listTenants(db, undefined, { number, size: pageSize })
    for (const tenant of tenants) {
      const uuid = tenant.metadata[tenantKey]
      if (typeof uuid === 'string') found.set(uuid, tenant)
    }
    if (number * pageSize >= total) return found
  }
}

/** The start of the year 10000; later times cannot be written in four digits. */
const endOfTimeSeconds = 253_402_300_800

/** null: no time, or one outside the years 1970 to 9999. */
function secondsOf(value: unknown): Date | null {
  const seconds = value == null ? Number.NaN : Number(value)
  return seconds >= 0 && seconds < endOfTimeSeconds ? new Date(seconds * 1000) : null
}

const maxReasonLength = 255

function entryOf({ type, address, reason, timestamp, keep_until: until }: Row, nowMs: number) {
  const keepUntil = secondsOf(until)
  if (type !== 'recipient' || (keepUntil && keepUntil.getTime() <= nowMs)) return []
  return [
    {
      address: typeof address === 'string' ? address : '',
      reason: typeof reason === 'string' ? reason.toWellFormed().replaceAll('\0', '').slice(0, maxReasonLength) : null,
      source: 'automatic' as const,
      createdAt: secondsOf(timestamp) ?? new Date(nowMs),
      keepUntil,
    },
  ]
}
