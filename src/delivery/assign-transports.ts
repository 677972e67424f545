/**
 * Assigns a transport to each recipient of claimed jobs by the rules in force, and keeps the health of the transports of this process. Without
 * rules it runs no query and changes no job.
 */
import type { Clock, Log } from '#base'
import type { Db } from '#db'
import { senderDomainsOf, tagsOf } from '#emails'
import type { AttemptResult } from './attempt-outcome.ts'
import { type Job, type JobTransport, separateJob, withRecipients } from './job.ts'
import { decideUse, healthAfter, healthyTransport, type TransportHealth, type TransportSignal } from './transports/transport-health.ts'
import type { Transport } from './transports/transport-records.ts'
import { defaultSlot, slotOf } from './transports/transport-shares.ts'
import type { TransportStates } from './transports/transport-states.ts'
import type { TransportTable } from './transports/transport-table.ts'

interface HealthDeps {
  clock: Clock
  log: Log
  /** Gets each change, for people. */
  states?: Pick<TransportStates, 'down' | 'up'> | undefined
}

/**
 * The health of each transport, as this process has seen it. Connections fail for everybody. A refusal counts only for the tenant whose
 * message was refused, so that one tenant's spam does not divert the others' mail.
 */
export class TransportHealths {
  readonly #clock: Clock
  readonly #log: Log
  readonly #firstDownMs: number | undefined
  readonly #states: Pick<TransportStates, 'down' | 'up'> | undefined
  /**
   * By name, creation and revision, because a changed transport is healthy again, and one that is added again; for refusals by tenant too. A
   * healthy one has no entry.
   */
  readonly #healths = new Map<string, TransportHealth>()

  /** `downForMs`: how long a failed connection counts for its site; a transport is down for twice that time first. */
  constructor({ clock, log, states }: HealthDeps, downForMs: number | undefined) {
    this.#clock = clock
    this.#log = log
    this.#states = states
    this.#firstDownMs = downForMs === undefined ? undefined : 2 * downForMs
  }

  /** Whether the tenant's next job may take it. Asking counts: while it is down, one job at a time may, and only at its first attempt. */
  mayUse(server: ServerTransport, tenantId: string, isFirstAttempt = true): boolean {
    const nowMs = this.#clock.monotonicMs()
    const decided = [keyOf(server), keyOf(server, tenantId)].map((key) => ({ key, ...decideUse(this.#at(key), nowMs, isFirstAttempt) }))
    if (!decided.every(({ isUsable }) => isUsable)) return false
    for (const { key, health } of decided) this.#set(key, health)
    return true
  }

  note(server: ServerTransport, signal: TransportSignal, tenantId: string): void {
    // A transport that refuses a message can be reached.
    this.#noteFor(server, keyOf(server), signal === 'failed' ? 'failed' : 'accepted')
    if (signal !== 'failed') this.#noteFor(server, keyOf(server, tenantId), signal, tenantId)
  }

  #noteFor(server: ServerTransport, key: string, signal: TransportSignal, tenantId = ''): void {
    const before = this.#at(key)
    const after = healthAfter(before, signal, this.#clock.monotonicMs(), this.#firstDownMs)
    if (after === before) return
    this.#set(key, after)
    const whose = { transport: server.name, ...(tenantId === '' ? {} : { tenantId }) }
    if (after.kind === 'up' && before.kind !== 'up') {
      this.#log.info(whose, 'the transport works again')
      this.#states?.up(server.name, tenantId)
    }
    if (after.kind === 'down' && before.kind !== 'down') {
      this.#log.warn({ ...whose, forMs: after.downForMs }, 'the transport is down; its mail takes another')
      const reason = signal === 'failed' ? 'failed' : 'refused'
      this.#states?.down({ transport: server.name, tenantId, revision: server.revision, reason }, after.downForMs)
    }
  }

  #at(key: string): TransportHealth {
    return this.#healths.get(key) ?? healthyTransport
  }

  #set(key: string, health: TransportHealth): void {
    if (health.kind === 'up' && health.refusals === 0) this.#healths.delete(key)
    else this.#healths.set(key, health)
  }
}

type ServerTransport = NonNullable<JobTransport['server']>

const keyOf = ({ name, createdAt, revision }: ServerTransport, tenantId = '') => `${name} ${createdAt.getTime()} ${revision} ${tenantId}`

/** The meaning of a result for the transport; undefined: it does not show whether the transport works. */
export function signalOf({ kind, reply, classification }: AttemptResult): TransportSignal | undefined {
  const isBlock = classification === 'spam_block' || classification === 'policy_violation'
  switch (kind) {
    case 'accepted':
      return 'accepted'
    case 'permanent':
      return reply ? (isBlock ? 'refused' : 'accepted') : undefined
    case 'temporary':
      if (!reply) return classification === 'temporarily_unavailable' ? undefined : 'failed'
      // 421 closes the connection at any command, so it is about the server and not the recipient (RFC 5321 section 4.2.3).
      if (reply.code === 421 || isBlock) return 'refused'
      return classification === 'temporarily_unavailable' || classification === 'connection_error' ? 'refused' : undefined
    case 'unknown':
      return 'failed'
    case 'suppressed':
    case 'tenant_paused':
    case 'domain_paused':
      return undefined
  }
}

export interface AssignDeps {
  db: Db
  table: TransportTable
  healths: TransportHealths
  /** The default of the installation: `relay` if POSTRIDER_RELAY is set, else `mx`. */
  defaultName: 'mx' | 'relay'
}

/**
 * The same recipients in jobs of one transport each. Queries senders and tags only where a rule names a domain or a tag. Test mail keeps
 * its job: the simulator takes it.
 */
export async function withTransports(jobs: readonly Job[], deps: AssignDeps): Promise<Job[]> {
  const { db, table } = deps
  if (table.isEmpty) return [...jobs]
  const facts = await factsOf(db, jobs, table)
  return jobs.flatMap((job) => {
    if (job.recipients[0].test) return [job]
    const { domain = null, tag = null } = facts.get(job.recipients[0].emailId) ?? {}
    const slots = table.slotsFor({ tenantId: job.tenantId, domain, tag })
    const groups = Map.groupBy(job.recipients, ({ emailId }) => slots?.[slotOf(emailId)] ?? defaultSlot)
    return [...groups].flatMap(([name, recipients], nth) => {
      const part = groups.size === 1 ? job : nth === 0 ? withRecipients(job, recipients) : separateJob(job, recipients)
      return part ? [{ ...part, transport: transportOf(name, part, deps) }] : []
    })
  })
}

function transportOf(name: string, job: Job, { table, healths, defaultName }: AssignDeps): JobTransport {
  if (name === 'mx' || (name === 'relay' && defaultName === 'relay')) return { name, server: undefined, fallbacks: [] }
  if (!table.hasRules(job.tenantId)) return { name: defaultName, server: undefined, fallbacks: [], isOnlyWay: true }
  const chain = name === defaultSlot ? [] : table.chainOf(name)
  return firstUsable(chain, job, { healths, defaultName })
}

/** The first transport of a chain that the job may use, or waits for; else the default. */
export function firstUsable(
  chain: readonly Transport[],
  { tenantId, recipients }: Pick<Job, 'tenantId' | 'recipients'>,
  { healths, defaultName }: Pick<AssignDeps, 'healths' | 'defaultName'>,
): JobTransport {
  const isFirstAttempt = recipients.every(({ attempts }) => attempts === 0)
  const at = chain.findIndex((one) => !one.failover || healths.mayUse(one, tenantId, isFirstAttempt))
  const server = chain[at]
  return server ? { name: server.name, server, fallbacks: chain.slice(at + 1) } : { name: defaultName, server: undefined, fallbacks: [] }
}

interface MailFacts {
  domain?: string
  tag?: string
}

async function factsOf(db: Db, jobs: readonly Job[], table: TransportTable): Promise<Map<string, MailFacts>> {
  const facts = new Map<string, MailFacts>()
  const add = (emailId: string, more: MailFacts) => facts.set(emailId, { ...facts.get(emailId), ...more })
  for (const [tenantId, some] of Map.groupBy(jobs, (job) => job.tenantId)) {
    const emailIds = some.map(({ recipients }) => recipients[0].emailId)
    const tags = table.tagsFor(tenantId)
    if (tags.length > 0) for (const [emailId, tag] of await tagsOf(db, tenantId, emailIds, tags)) add(emailId, { tag })
    if (table.hasDomains(tenantId)) for (const [emailId, domain] of await senderDomainsOf(db, tenantId, emailIds)) add(emailId, { domain })
  }
  return facts
}
