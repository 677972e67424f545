/** Commands for request and send limits: set and list. */
import { getCredential } from '#credentials'
import { keyLimitScope, listLimits, organisationLimitScope, setLimits, tenantLimitScope } from '#limits'
import { tenantOf } from './command-arguments.ts'
import { type Command, jsonOption, printed, text, UsageError } from './command-definition.ts'

/** null: the default. */
function limitIn<W extends string = never>(name: string, value: string, word?: W): number | W | null {
  if (value === 'default') return null
  if (value === word) return word
  if (!/^\d{1,9}$/.test(value) || Number(value) < 1)
    throw new UsageError(`--${name} must be a whole number of at least 1${word === undefined ? '' : `, ${word}`}, or default`)
  return Number(value)
}

export const limitsSet: Command = {
  name: 'limits set',
  audited: true,
  summary: 'change the request rate or the hourly send limit',
  help: `postrider limits set [--rate N|default] [--send N|unlimited|default] [--tenant ID] [--key ID] [--json]

Changes how many requests a key may make in a second, and how many emails may be sent in an hour.
--rate    requests per second of every key, or of one key with --key
--send    emails per clock hour of the organisation, or a lower limit for one tenant with --tenant or one key with --key
default   removes the limit: of the organisation, the setting of the environment applies again; of a tenant or a key, the organisation's
unlimited removes the limit of a tenant or a key too
Takes effect within about two seconds. postrider tenant list and postrider key list print the ids.

Example: postrider limits set --send 5000 --tenant tq3v6k2m`,
  options: { rate: { type: 'string' }, send: { type: 'string' }, tenant: { type: 'string' }, key: { type: 'string' }, ...jsonOption },
  async run(given, deps) {
    const [rate, send, tenant, key] = ['rate', 'send', 'tenant', 'key'].map((name) => text(given, name))
    if (rate === undefined && send === undefined) throw new UsageError('give --rate, --send or both')
    if (key !== undefined && tenant !== undefined) throw new UsageError('give --tenant or --key, not both')
    if (tenant !== undefined && rate !== undefined) throw new UsageError('--rate: a tenant has no rate, only every key or one key')
    const ratePerSecond = rate === undefined ? {} : { ratePerSecond: limitIn('rate', rate) }
    const sendPerHour = send === undefined ? {} : { sendPerHour: limitIn('send', send, 'unlimited') }
    await deps.withInstallation(async (installation) => {
      const scope =
        tenant !== undefined
          ? tenantLimitScope((await tenantOf(installation, tenant)).id)
          : key !== undefined
            ? keyLimitScope((await getCredential(installation.db, key, null)).credential.id)
            : organisationLimitScope
      await setLimits(installation.db, scope, { ...ratePerSecond, ...sendPerHour })
      const shownRate = rate === undefined || rate === 'default' ? (rate ?? null) : Number(rate)
      printed(given, deps, { scope, rate: shownRate, send: send ?? null }, `changed the limits of ${scope}`)
    })
  },
}

export const limitsList: Command = {
  name: 'limits list',
  summary: 'list limits that override those of the environment',
  help: `postrider limits list [--json]

Lists the limits of the organisation, of tenants and of keys set by postrider limits set or the dashboard. All others have the defaults
POSTRIDER_RATE_LIMIT and POSTRIDER_SEND_LIMIT.`,
  options: { ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async ({ db }) => {
      const limits = await listLimits(db)
      const lines = limits.map(({ scope, ratePerSecond, sendPerHour }) =>
        [
          scope.replace(':', ' ').padEnd(28),
          ...(ratePerSecond === null ? [] : [`${ratePerSecond} requests per second`]),
          ...(sendPerHour === null ? [] : [`${sendPerHour} emails per hour`]),
        ].join('  '),
      )
      printed(given, deps, { limits }, lines.join('\n') || 'no limits set: POSTRIDER_RATE_LIMIT and POSTRIDER_SEND_LIMIT apply')
    }),
}
