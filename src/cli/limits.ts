/** Commands for request and send limits: set and list. */
import { getCredential } from '#credentials'
import { keyLimitScope, listLimits, organisationLimitScope, setLimits, tenantLimitScope } from '#limits'
import { type Command, jsonOption, printed, tenantOf, text, UsageError } from './command-definition.ts'

const count = (name: string, value: string): number => {
  if (!/^\d{1,9}$/.test(value) || Number(value) < 1) throw new UsageError(`--${name} must be a whole number of at least 1`)
  return Number(value)
}

export const limitsSet: Command = {
  name: 'limits set',
  audited: true,
  summary: 'change the request rate or the hourly send limit',
  help: `postrider limits set [--rate N] [--send N|unlimited] [--tenant ID] [--key ID] [--json]

Changes how many requests a key may make in a second, and how many emails may be sent in an hour.
--rate N            requests per second of every key, or of one key with --key
--send N|unlimited  emails per clock hour of the organisation, or a lower limit for one tenant with --tenant or one key with --key
Takes effect within about two seconds. postrider tenant list and postrider key list print the ids.

Example: postrider limits set --send 5000 --tenant tq3v6k2m`,
  options: { rate: { type: 'string' }, send: { type: 'string' }, tenant: { type: 'string' }, key: { type: 'string' }, ...jsonOption },
  async run(given, deps) {
    const [rate, send, tenant, key] = ['rate', 'send', 'tenant', 'key'].map((name) => text(given, name))
    if (rate === undefined && send === undefined) throw new UsageError('give --rate, --send or both')
    if (key !== undefined && tenant !== undefined) throw new UsageError('give --tenant or --key, not both')
    if (tenant !== undefined && (rate !== undefined || send === 'unlimited'))
      throw new UsageError('--send: the limit of a tenant must be a number')
    const ratePerSecond = rate === undefined ? {} : { ratePerSecond: count('rate', rate) }
    const sendPerHour = send === undefined ? {} : { sendPerHour: send === 'unlimited' ? ('unlimited' as const) : count('send', send) }
    await deps.withInstallation(async (installation) => {
      const scope =
        tenant !== undefined
          ? tenantLimitScope((await tenantOf(installation, tenant)).id)
          : key !== undefined
            ? keyLimitScope((await getCredential(installation.db, key, null)).credential.id)
            : organisationLimitScope
      await setLimits(installation.db, scope, { ...ratePerSecond, ...sendPerHour })
      printed(given, deps, { scope, rate: rate === undefined ? null : Number(rate), send: send ?? null }, `changed the limits of ${scope}`)
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
