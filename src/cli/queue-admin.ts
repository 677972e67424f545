/** Operator commands: the queue and paused tenants. */
import { emailIdTimeMs, Refusal } from '#base'
import {
  cancelQueue,
  flushQueue,
  openProviders,
  pauseQueue,
  pauseTenant,
  type QueueLine,
  readQueue,
  releaseQueue,
  resumePaused,
  resumeTenant,
} from '#delivery'
import { listDomains } from '#domains'
import type { Installation } from '#installation'
import { parseDomain } from '#mail'
import { listQueuePauses } from '#spool'
import { openRecent } from '#usage'
import { domainIn, givenTenant, tenantOf } from './command-arguments.ts'
import { type Command, type CommandArguments, jsonOption, printed, text, UsageError } from './command-definition.ts'

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
  const [unit, length] = units.find(([, minimumMs]) => ms >= minimumMs) ?? units[3]
  return `${Math.max(0, Math.floor(ms / length))} ${unit}`
}

const table = (queue: readonly Shown[], nowMs: number) =>
  queue.length === 0
    ? 'no live mail is queued (test mail is not shown)'
    : [
        'recipient domain                    ready sending deferred waiting    held  oldest  per min  last reply',
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
  summary: 'show queued mail by recipient domain, and the reasons for delays',
  help: `postrider queue [--tenant ID] [--json]

Shows the ${maxShown} longest queues of live mail by recipient domain. Columns: recipients ready, sending, deferred, over
the send limit (waiting) and held; age of the oldest; sent in the last minute; last reply or reason for the delay. Also lists pauses, the
current limits of each provider, and warm-ups.

postrider queue pause|resume   pause or resume a recipient domain, a provider or a sending domain
postrider queue flush          retry deferred mail now
postrider queue release        release held mail
postrider queue cancel         fail queued mail permanently`,
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
          `${one.rate === null ? 'any rate' : `${one.rate.toFixed(1)} per second`}` +
          `${one.backoffUntilMs !== null && one.backoffUntilMs > nowMs ? `, backing off for ${age(one.backoffUntilMs - nowMs)} more` : ''}${one.cause === null ? '' : ` (${one.cause.slice(0, 120)})`}`,
      )
      const warming = queue.warmUps.map(
        (one) => `warm-up: ${one.source} to ${one.provider}: ${one.taken} of ${one.ceiling} today, day ${one.day}`,
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
    throw new UsageError('give exactly one of --destination, --provider and --domain')
  if (provider !== undefined) return { tenantId: '', kind: 'provider' as const, name: providerNamed(provider, installation) }
  if (destination !== undefined) return { tenantId: '', kind: 'destination' as const, name: domainIn(destination, '--destination') }
  const name = domainIn(domain as string, '--domain')
  return { tenantId: await ownerOf(name, await givenTenant(given, installation), installation), kind: 'domain' as const, name }
}

/** The tenant that has the sending domain, or a pause of it. `tenantId`: the named tenant. */
async function ownerOf(name: string, tenantId: string | undefined, installation: Installation): Promise<string> {
  const { db, config } = installation
  // Of the sandbox sender, whose domain is not a sending domain: of the named tenant, or of the default tenant.
  if (config.sandboxSender.endsWith(`@${name}`)) return (await tenantOf(installation, tenantId)).id
  const all = [...(await listDomains(db, null)), ...(await listQueuePauses(db)).filter(({ kind }) => kind === 'domain')]
  const owners = new Set(all.filter((one) => one.name === name).map((one) => one.tenantId))
  const [owner] = tenantId === undefined ? owners : [...owners].filter((one) => one === tenantId)
  if (owner === undefined)
    throw new Refusal('not_found', {
      message: `no sending domain ${name}${tenantId === undefined ? '' : ` of tenant ${tenantId}`}`,
      suggestion: 'Run postrider domain list for all domains and their tenants',
    })
  if (tenantId === undefined && owners.size > 1)
    throw new UsageError(`several tenants have a domain ${name}: ${[...owners].join(', ')}. Name one with --tenant ID`)
  return owner
}

/** The name of a provider rule, or a domain of mail servers; for a domain covered by a rule, the rule's name. */
function providerNamed(given: string, { config }: Installation): string {
  const providers = openProviders(config.providerRules)
  // A mixed site is named after the providers of its servers, joined by `+`.
  if (providers.names.has(given) || given.includes('+')) return given
  const domain = parseDomain(given)
  if (domain === undefined)
    throw new UsageError(
      `--provider: unknown provider "${given}". Use a domain of mail servers, or one of ${[...providers.names].join(', ')}`,
    )
  return providers.of(domain, domain).name
}

export const queuePause: Command = {
  name: 'queue pause',
  audited: true,
  summary: 'pause mail to a recipient domain or provider, or from a sending domain',
  help: `postrider queue pause --destination DOMAIN | --provider NAME | --domain NAME [--tenant ID] [--reason TEXT] [--json]

--destination  mail for this recipient domain stays queued; mail in flight is still sent
--provider     the same for all domains of this provider: gmail, or another name that \`postrider queue\` shows
--domain       mail from this sending domain is held; --tenant if several tenants have the domain
--reason       shown with the pause
Takes effect within one second and lasts until \`postrider queue resume\`. Mail of a paused queue uses no attempts.`,
  options: { ...placeOptions, reason: { type: 'string' }, ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const place = await placeOf(given, installation)
      const reason = text(given, 'reason') ?? 'paused by the operator'
      await pauseQueue(installation.db, place, reason, installation.clock.nowMs())
      printed(given, deps, { ...place, reason, paused: true }, `paused ${place.kind} ${place.name}`)
    }),
}

export const queueResume: Command = {
  name: 'queue resume',
  audited: true,
  summary: 'resume a paused recipient domain, provider or sending domain',
  help: `postrider queue resume --destination DOMAIN | --provider NAME | --domain NAME [--tenant ID] [--json]

Mail held for the domain is released in the order of acceptance. Mail for a provider resumes within five seconds.`,
  options: { ...placeOptions, ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const place = await placeOf(given, installation)
      const resumed = await resumePaused(installation.db, place, installation.clock.nowMs())
      printed(
        given,
        deps,
        { ...place, resumed },
        resumed ? `resumed ${place.kind} ${place.name}` : `${place.kind} ${place.name} was not paused`,
      )
    }),
}

const filterOptions = { email: { type: 'string' }, tenant: { type: 'string' }, destination: { type: 'string' } } as const
async function filterOf(given: CommandArguments, installation: Installation) {
  const destination = text(given, 'destination')
  return {
    emailId: text(given, 'email'),
    tenantId: await givenTenant(given, installation),
    recipientDomain: destination === undefined ? undefined : domainIn(destination, '--destination'),
  }
}

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
  { summary: 'retry deferred mail now', help: 'Makes deferred mail due at once. Without an option: all deferred mail.' },
  ({ db, clock }, filter) => flushQueue(db, filter, clock.nowMs()),
)

export const queueRelease = forQueue(
  'release',
  'released',
  {
    summary: 'release held mail',
    help: 'Puts held mail back into the queue, oldest first. Mail to a suppressed address is held again: retry it instead.',
  },
  ({ db, clock }, filter) => releaseQueue(db, filter, clock.nowMs()),
)

export const queueCancel = forQueue(
  'cancel',
  'cancelled',
  {
    summary: 'fail queued mail permanently',
    help: 'Fails the selected mail permanently, except mail in flight. Recipients are not suppressed. At least one option is required.',
  },
  ({ db, clock }, filter) => cancelQueue(db, filter, clock.nowMs()),
)

export const tenantPause: Command = {
  name: 'tenant pause',
  audited: true,
  summary: "hold a tenant's mail",
  help: `postrider tenant pause ID [--reason TEXT] [--json]

Holds the new and queued mail of the tenant until \`postrider tenant resume\`, at most seven days: then it fails permanently. The automatic pause has
the same effect.
--reason  shown with the pause`,
  options: { reason: { type: 'string' }, ...jsonOption },
  positionals: ['ID'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const { db, clock } = installation
      const { id } = await tenantOf(installation, given.positionals[0])
      const reason = text(given, 'reason') ?? 'paused by the operator'
      await pauseTenant(db, id, { reason, by: 'operator' }, clock.nowMs())
      printed(given, deps, { id, paused: true, reason }, `paused tenant ${id}`)
    }),
}

export const tenantResume: Command = {
  name: 'tenant resume',
  audited: true,
  summary: "resume a paused tenant's mail",
  help: 'postrider tenant resume ID [--json]\n\nReleases its held mail in the order of acceptance. The automatic pause ignores earlier complaints and failures.',
  options: { ...jsonOption },
  positionals: ['ID'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const { db, clock } = installation
      const { id } = await tenantOf(installation, given.positionals[0])
      const resumed = await resumeTenant(db, id, clock.nowMs())
      printed(given, deps, { id, paused: false, resumed }, resumed ? `resumed tenant ${id}` : `tenant ${id} was not paused`)
    }),
}
