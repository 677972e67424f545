/** Commands that create records: keys, tenants, domains, members, limits. */
import { createKey, getCredential, type Permission, permissions } from '#credentials'
import type { Installation } from '#installation'
import { keyLimitScope, organisationLimitScope, setLimits, tenantLimitScope } from '#limits'
import { parseAddress } from '#mail'
import { addMember, listMembers, resetMember, resetSecondFactor, roles } from '#members'
import { addTenant } from '#tenants'
import {
  type Command,
  type CommandArguments,
  givenTenant,
  jsonOption,
  needed,
  printed,
  tenantOf,
  text,
  UsageError,
} from './command-definition.ts'

const facts = (installation: Installation) => ({ nowMs: installation.clock.nowMs(), ids: installation.ids })

export const keyCreate: Command = {
  name: 'key create',
  audited: true,
  summary: 'make an API key; it is shown once',
  help: `postrider key create --type live|test [--tenant ID] [--permissions a,b] [--name N] [--json]

Makes an API key and prints it once. Without --tenant it is organisation-level; without --permissions it has full access.
Permissions: ${permissions.join(', ')}`,
  options: {
    type: { type: 'string' },
    tenant: { type: 'string' },
    permissions: { type: 'string' },
    name: { type: 'string' },
    ...jsonOption,
  },
  async run(given, deps) {
    const type = needed(given, 'type')
    if (type !== 'live' && type !== 'test') throw new UsageError('--type must be live or test')
    const wanted = text(given, 'permissions')
      ?.split(',')
      .map((one) => one.trim())
    const unknown = wanted?.find((one) => !permissions.some((known) => known === one))
    if (unknown !== undefined) throw new UsageError(`--permissions: "${unknown}" is not one of ${permissions.join(', ')}`)
    const allowed = (wanted as Permission[] | undefined) ?? null
    await deps.withInstallation(async (installation) => {
      const tenantId = (await givenTenant(given, installation)) ?? null
      const wanted = { mode: type, name: text(given, 'name') ?? `${type}-key`, tenantId, permissions: allowed } as const
      const made = await installation.db.transaction((tx) => createKey(tx, wanted, facts(installation)))
      printed(
        given,
        deps,
        { id: made.id, key: made.key, type, tenantId, permissions: allowed },
        `${made.key}\n\nThis key is shown once. Keep it safe.`,
      )
    })
  },
}

export const tenantCreate: Command = {
  name: 'tenant create',
  audited: true,
  summary: 'make a tenant',
  help: 'postrider tenant create --name N [--json]\n\nMakes a tenant: a customer with domains, keys, mail and lists of its own.',
  options: { name: { type: 'string' }, ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const tenant = await addTenant(installation.db, { name: needed(given, 'name') }, facts(installation))
      const record = { id: tenant.id, name: tenant.name, status: tenant.status, isDefault: tenant.isDefault, createdAt: tenant.createdAt }
      printed(given, deps, record, `tenant ${tenant.id} (${tenant.name})`)
    }),
}

export const memberAdd: Command = {
  name: 'member add',
  audited: true,
  summary: 'add a member; organisation members may receive sandbox mail',
  help: `postrider member add ADDRESS [--role owner|admin|viewer] [--tenant ID] [--json]

Adds a member and prints a sign-in link, valid once for 24 hours. With --tenant the member sees that tenant only and is no sandbox
recipient.`,
  options: { role: { type: 'string' }, tenant: { type: 'string' }, ...jsonOption },
  positionals: ['ADDRESS'],
  async run(given, deps) {
    const address = parseAddress(given.positionals[0] as string)
    if (!address) throw new UsageError(`"${given.positionals[0]}" is not an email address`)
    const role = roles.find((one) => one === (text(given, 'role') ?? 'viewer'))
    if (!role) throw new UsageError(`--role must be one of ${roles.join(', ')}`)
    await deps.withInstallation(async (installation) => {
      const tenantId = (await givenTenant(given, installation)) ?? null
      const { member, signInToken } = await installation.db.transaction((tx) =>
        addMember(tx, { address: address.text, role, tenantId }, facts(installation)),
      )
      const signInUrl = `${installation.config.publicUrl}/sign-in/${signInToken}`
      printed(given, deps, { ...member, signInUrl }, `${member.address} (${member.role})\n${signInUrl}`)
    })
  },
}

export const memberList: Command = {
  name: 'member list',
  summary: 'list members',
  help: 'postrider member list [--json]\n\nWho may sign in to the dashboard, with role and tenant.',
  options: { ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async ({ db }) => {
      const members = await listMembers(db, null)
      const lines = members.map((one) => `${one.address}  ${one.role}${one.tenantId === null ? '' : ` of tenant ${one.tenantId}`}`)
      printed(given, deps, { members }, lines.join('\n') || 'there are no members: postrider member add ADDRESS --role owner')
    }),
}

/** null: the organisation; undefined: not given. */
const meantTenant = async (given: CommandArguments, installation: Installation): Promise<string | null | undefined> =>
  text(given, 'tenant') === 'organisation' ? null : givenTenant(given, installation)

export const memberReset: Command = {
  name: 'member reset',
  audited: true,
  summary: "end a member's sessions and print a new sign-in link",
  help: `postrider member reset ADDRESS [--tenant ID|organisation] [--json]

Forgets the password of a member, ends all sessions within a second, and prints a new sign-in link, valid once for 24 hours.
--tenant says which member is meant where the address is one of several.`,
  options: { tenant: { type: 'string' }, ...jsonOption },
  positionals: ['ADDRESS'],
  async run(given, deps) {
    const address = given.positionals[0] as string
    await deps.withInstallation(async (installation) => {
      const tenantId = await meantTenant(given, installation)
      const { member, signInToken } = await installation.db.transaction((tx) => resetMember(tx, address, tenantId, facts(installation)))
      const signInUrl = `${installation.config.publicUrl}/sign-in/${signInToken}`
      printed(given, deps, { ...member, signInUrl }, `${member.address} (${member.role})\n${signInUrl}`)
    })
  },
}

export const memberResetTotp: Command = {
  name: 'member reset-totp',
  summary: "take a member's second factor away",
  help: `postrider member reset-totp ADDRESS [--tenant ID|organisation] [--json]

For a member who has lost the authenticator and the recovery codes: the password alone signs in again. Ends all sessions within a second.
--tenant says which member is meant where the address is one of several.`,
  options: { tenant: { type: 'string' }, ...jsonOption },
  positionals: ['ADDRESS'],
  audited: true,
  async run(given, deps) {
    const address = given.positionals[0] as string
    await deps.withInstallation(async (installation) => {
      const tenantId = await meantTenant(given, installation)
      const member = await installation.db.transaction((tx) => resetSecondFactor(tx, address, tenantId))
      printed(given, deps, { ...member }, `${member.address} (${member.role}) has no second factor now`)
    })
  },
}

const count = (name: string, value: string): number => {
  if (!/^\d{1,9}$/.test(value) || Number(value) < 1) throw new UsageError(`--${name} must be a whole number of at least 1`)
  return Number(value)
}

export const limitsSet: Command = {
  name: 'limits set',
  audited: true,
  summary: 'change the request rate or the hourly send limit',
  help: `postrider limits set [--rate N] [--send N|unlimited] [--tenant ID] [--key ID] [--json]

--rate N            requests per second of every key, or of one with --key
--send N|unlimited  emails per clock hour of the organisation, or a lower ceiling of one tenant with --tenant
In force within about two seconds. The ids: postrider tenant list, postrider key list.`,
  options: { rate: { type: 'string' }, send: { type: 'string' }, tenant: { type: 'string' }, key: { type: 'string' }, ...jsonOption },
  async run(given, deps) {
    const [rate, send, tenant, key] = ['rate', 'send', 'tenant', 'key'].map((name) => text(given, name))
    if (rate === undefined && send === undefined) throw new UsageError('give --rate, --send or both')
    if (key !== undefined && send !== undefined) throw new UsageError('--send is for the organisation or a tenant, not for a key')
    if (tenant !== undefined && (rate !== undefined || send === 'unlimited'))
      throw new UsageError('a tenant has a ceiling in numbers: use --send N')
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
      printed(given, deps, { scope, rate: rate === undefined ? null : Number(rate), send: send ?? null }, `limits of ${scope} changed`)
    })
  },
}
