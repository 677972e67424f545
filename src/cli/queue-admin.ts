/** Operator commands: the queue, paused tenants, and `explain` for an email's state. */
import { emailIdTimeMs, Refusal } from '#base'
import {
  cancelQueue,
  explain,
  flushQueue,
  openDelayReasons,
  openProviders,
  pauseQueue,
  pauseTenant,
  type QueueLine,
  readQueue,
  releaseQueue,
  resumePaused,
  resumeTenant,
} from '#delivery'
import { findEmail } from '#emails'
import type { Installation } from '#installation'
import { openLimitSettings } from '#limits'
import { parseAddress } from '#mail'
import { openResolver } from '#net'
import { openTenants } from '#tenants'
import { openRecent } from '#usage'
import { type Command, type CommandArguments, givenTenant, jsonOption, printed, tenantOf, text, UsageError } from './command-definition.ts'

const maxShown = 50

type Shown = QueueLine & { oldestAt: Date; perMinute: number }

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const

/** In the largest unit with a value of at least one. */
function age(ms: number): string {
  const [unit, length] = units.find(([, least]) => ms >= least) ?? units[3]
  return `${Math.max(0, Math.floor(ms / length))} ${unit}`
}

const table = (queue: readonly Shown[], nowMs: number) =>
  queue.length === 0
    ? 'the queue is empty'
    : [
        'destination                         ready sending deferred waiting    held  oldest a minute  last reply',
        ...queue.map((one) =>
          [
            one.recipientDomain.padEnd(34),
            ...[one.ready, one.sending, one.deferred, one.overLimit, one.held].map((count) => String(count).padStart(7)),
            age(nowMs - one.oldestAt.getTime()).padStart(7),
            String(one.perMinute).padStart(8),
            `  ${one.pauseReason !== null ? `PAUSED (${one.pauseReason}) ` : ''}${(one.delayReason ?? one.lastReply?.details ?? '').slice(0, 120)}`,
          ].join(' '),
        ),
      ].join('\n')

export const queueShow: Command = {
  name: 'queue',
  summary: 'what waits, by destination, and why',
  help: `postrider queue [--tenant ID] [--json]

Shows the ${maxShown} longest queues of live mail by destination: how many recipients are ready, being sent, deferred, waiting for send capacity
and held, how old the oldest is, how many were sent in the last minute, what the last deferred one was told or waits for, what is paused, what
is allowed toward each provider, and how far warm-ups are.

postrider queue pause|resume   stop or go on for a destination, a provider or a sending domain
postrider queue flush          try deferred mail now
postrider queue release        let held mail go
postrider queue cancel         fail queued mail for good`,
  options: { tenant: { type: 'string' }, ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const { db, clock } = installation
      const tenantId = (await givenTenant(given, installation)) ?? null
      const nowMs = clock.nowMs()
      const [queue, { perMinute }] = await Promise.all([
        readQueue(db, tenantId, maxShown, nowMs),
        openRecent({ db, clock }).get(tenantId ?? ''),
      ])
      const recipientDomains = queue.recipientDomains.map((one) => ({
        ...one,
        oldestAt: new Date(emailIdTimeMs(one.oldestEmailId) ?? nowMs),
        perMinute: perMinute.get(one.recipientDomain) ?? 0,
      }))
      const paused = queue.pauses.map(
        (one) => `paused: ${one.kind} ${one.name}${one.tenantId ? ` of ${one.tenantId}` : ''} (${one.reason})`,
      )
      const shaped = queue.providers.map(
        (one) =>
          `${one.provider}${one.source ? ` from ${one.source}` : ''}: ${one.connectionsOpen} of ${one.connections} connections, ` +
          `${one.rate === null ? 'any rate' : `${one.rate.toFixed(1)} a second`}` +
          `${one.backoffUntilMs !== null && one.backoffUntilMs > nowMs ? `, left alone for ${age(one.backoffUntilMs - nowMs)} more` : ''}${one.cause === null ? '' : ` (${one.cause.slice(0, 120)})`}`,
      )
      const warming = queue.warmUps.map(
        (one) => `warm-up: ${one.source} to ${one.provider}: ${one.taken} of ${one.ceiling} today, its day ${one.day}`,
      )
      printed(given, deps, { ...queue, recipientDomains }, [table(recipientDomains, nowMs), ...paused, ...shaped, ...warming].join('\n'))
    }),
}

const placeOptions = {
  destination: { type: 'string' },
  provider: { type: 'string' },
  domain: { type: 'string' },
  tenant: { type: 'string' },
} as const

async function placeOf(given: CommandArguments, installation: Installation) {
  const destination = text(given, 'destination')
  const domain = text(given, 'domain')
  const provider = text(given, 'provider')?.toLowerCase()
  if ([destination, domain, provider].filter((one) => one !== undefined).length !== 1)
    throw new UsageError('give one of --destination, --provider and --domain')
  if (provider !== undefined) return { tenantId: '', kind: 'provider' as const, name: providerNamed(provider, installation) }
  if (destination !== undefined) {
    const name = parseAddress(`a@${destination}`)?.domain
    if (name === undefined) throw new UsageError(`--destination: "${destination}" is not a domain`)
    return { tenantId: '', kind: 'destination' as const, name }
  }
  const tenantId = (await tenantOf(installation, text(given, 'tenant'))).id
  return { tenantId, kind: 'domain' as const, name: (domain as string).toLowerCase() }
}

/** The name of a provider rule, or a domain of mail servers; for a domain covered by a rule, the rule's name. */
function providerNamed(given: string, { config }: Installation): string {
  const providers = openProviders(config.providerRules)
  // A mixed site is named after the providers of its servers, joined by `+`.
  if (providers.names.has(given) || given.includes('+')) return given
  const domain = parseAddress(`a@${given}`)?.domain
  if (domain === undefined || !domain.includes('.'))
    throw new UsageError(`--provider: there is no "${given}": give a domain of mail servers, or one of ${[...providers.names].join(', ')}`)
  return providers.of(domain, domain).name
}

export const queuePause: Command = {
  name: 'queue pause',
  audited: true,
  summary: 'stop sending to a destination or a provider, or from a sending domain',
  help: `postrider queue pause --destination DOMAIN | --provider NAME | --domain NAME [--tenant ID] [--reason TEXT] [--json]

--destination  mail for this recipients' domain stays queued; what is on its way now is still sent
--provider     the same for all domains whose mail this provider takes: gmail, or whatever name \`postrider queue\` shows
--domain       mail from this sending domain (of --tenant, or the default tenant) is held
In force within a second, and until \`postrider queue resume\`. Retries do not use up attempts meanwhile.`,
  options: { ...placeOptions, reason: { type: 'string' }, ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const place = await placeOf(given, installation)
      const reason = text(given, 'reason') ?? 'paused by the operator'
      await pauseQueue(installation.db, place, reason, installation.clock.nowMs())
      printed(given, deps, { ...place, reason, paused: true }, `${place.kind} ${place.name} is paused`)
    }),
}

export const queueResume: Command = {
  name: 'queue resume',
  audited: true,
  summary: 'go on with a paused destination, provider or sending domain',
  help: `postrider queue resume --destination DOMAIN | --provider NAME | --domain NAME [--tenant ID] [--json]

What was held for the domain is released in the order of acceptance. Mail for a provider goes on within five seconds.`,
  options: { ...placeOptions, ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const place = await placeOf(given, installation)
      const resumed = await resumePaused(installation.db, place, installation.clock.nowMs())
      printed(
        given,
        deps,
        { ...place, resumed },
        resumed ? `${place.kind} ${place.name} goes on` : `${place.kind} ${place.name} was not paused`,
      )
    }),
}

const filterOptions = { email: { type: 'string' }, tenant: { type: 'string' }, destination: { type: 'string' } } as const
const filterOf = async (given: CommandArguments, installation: Installation) => ({
  emailId: text(given, 'email'),
  tenantId: await givenTenant(given, installation),
  recipientDomain: text(given, 'destination')?.toLowerCase(),
})

/** A command that applies one action to all matching queued mail. */
const forQueue = (
  verb: string,
  past: string,
  about: { summary: string; help: string },
  act: (installation: Installation, filter: Awaited<ReturnType<typeof filterOf>>) => Promise<number>,
): Command => ({
  name: `queue ${verb}`,
  audited: true,
  summary: about.summary,
  help: `postrider queue ${verb} [--email ID] [--tenant ID] [--destination DOMAIN] [--json]\n\n${about.help}`,
  options: { ...filterOptions, ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const emails = await act(installation, await filterOf(given, installation))
      printed(given, deps, { action: verb, emails }, `${emails} ${emails === 1 ? 'email' : 'emails'} ${past}`)
    }),
})

export const queueFlush = forQueue(
  'flush',
  'due now',
  { summary: 'try deferred mail now', help: 'Deferred mail becomes due at once; without an option, all of it.' },
  ({ db, clock }, filter) => flushQueue(db, filter, clock.nowMs()),
)

export const queueRelease = forQueue(
  'release',
  'released',
  {
    summary: 'let held mail go',
    help: 'Held mail goes back into the queue, oldest first. A suppression is not skipped: such mail is held again, retry it instead.',
  },
  ({ db, clock }, filter) => releaseQueue(db, filter, clock.nowMs()),
)

export const queueCancel = forQueue(
  'cancel',
  'cancelled',
  {
    summary: 'fail queued mail for good',
    help: 'Fails what is chosen and not being sent, without a suppression. One option at least is needed.',
  },
  ({ db, clock }, filter) => cancelQueue(db, filter, clock.nowMs()),
)

export const tenantPause: Command = {
  name: 'tenant pause',
  audited: true,
  summary: "hold a tenant's mail",
  help: `postrider tenant pause ID [--reason TEXT] [--json]

The tenant's mail is accepted and held, what is queued too, until \`postrider tenant resume\`. The abuse brake does the same by itself.`,
  options: { reason: { type: 'string' }, ...jsonOption },
  positionals: ['ID'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const { db, clock } = installation
      const { id } = await tenantOf(installation, given.positionals[0])
      const reason = text(given, 'reason') ?? 'paused by the operator'
      await pauseTenant(db, id, { reason, by: 'operator' }, clock.nowMs())
      printed(given, deps, { id, paused: true, reason }, `tenant ${id} is paused`)
    }),
}

export const tenantResume: Command = {
  name: 'tenant resume',
  audited: true,
  summary: "let a paused tenant's mail go",
  help: 'postrider tenant resume ID [--json]\n\nIts held mail is released in the order of acceptance. What happened before counts no longer against it.',
  options: { ...jsonOption },
  positionals: ['ID'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const { db, clock } = installation
      const { id } = await tenantOf(installation, given.positionals[0])
      const resumed = await resumeTenant(db, id, clock.nowMs())
      printed(given, deps, { id, paused: false, resumed }, resumed ? `tenant ${id} goes on` : `tenant ${id} was not paused`)
    }),
}

export const explainCommand: Command = {
  name: 'explain',
  summary: 'why an email is where it is, and what comes next',
  help: `postrider explain EMAIL_ID [--json]

One sentence for now and one for next. The API shows the same as \`explanation\` of an email's details.`,
  options: { ...jsonOption },
  positionals: ['EMAIL_ID'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const id = given.positionals[0] as string
      const email = await findEmail(installation.db, id, null)
      if (!email)
        throw new Refusal('not_found', { message: `there is no email ${id}`, suggestion: 'Give the id that the API answered with' })
      const resolver = openResolver({ servers: installation.config.resolvers, clock: installation.clock, ids: installation.ids })
      const delayReasons = openDelayReasons({ ...installation, resolver })
      const told = await explain(
        { ...installation, tenants: openTenants(installation), limitSettings: openLimitSettings(installation), delayReasons },
        email,
      )
      printed(given, deps, { id, status: email.status, ...told }, `${email.status}: ${told.now}\nnext: ${told.next}`)
    }),
}
