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
  summary: 'create an API key and print it once',
  help: `postrider key create --type live|test [--tenant ID] [--permissions a,b] [--name N] [--json]

Creates an API key and prints it once. Without --tenant, the key belongs to the organisation; without --permissions, it has full access.
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
        `${made.key}\n\nStore this key now: it is shown only once.`,
      )
    })
  },
}

export const tenantCreate: Command = {
  name: 'tenant create',
  audited: true,
  summary: 'create a tenant',
  help: 'postrider tenant create --name N [--json]\n\nCreates a tenant: a customer with its own domains, keys, mail and suppression list.',
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
  summary: 'add a member; members of the organisation can receive sandbox mail',
  help: `postrider member add ADDRESS [--role owner|admin|viewer] [--tenant ID] [--json]

Adds a member and prints a sign-in link that works once, within 24 hours. With --tenant, the member sees only that tenant and cannot
receive sandbox mail.`,
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
  help: 'postrider member list [--json]\n\nLists the members who can sign in to the dashboard, with role and tenant.',
  options: { ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async ({ db }) => {
      const members = await listMembers(db, null)
      const lines = members.map((one) => `${one.address}  ${one.role}${one.tenantId === null ? '' : ` of tenant ${one.tenantId}`}`)
      printed(given, deps, { members }, lines.join('\n') || 'no members. To add one: postrider member add ADDRESS --role owner')
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

Deletes the password of a member, ends all sessions within one second, and prints a new sign-in link that works once, within 24 hours.
--tenant  selects the member if the address belongs to several`,
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
  summary: 'turn off two-factor authentication of a member',
  help: `postrider member reset-totp ADDRESS [--tenant ID|organisation] [--json]

Turns two-factor authentication off for a member who has lost the authenticator and the recovery codes: the password alone signs in.
Ends all sessions of the member within one second.
--tenant  selects the member if the address belongs to several`,
  options: { tenant: { type: 'string' }, ...jsonOption },
  positionals: ['ADDRESS'],
  audited: true,
  async run(given, deps) {
    const address = given.positionals[0] as string
    await deps.withInstallation(async (installation) => {
      const tenantId = await meantTenant(given, installation)
      const member = await installation.db.transaction((tx) => resetSecondFactor(tx, address, tenantId))
      printed(given, deps, { ...member }, `two-factor authentication is now off for ${member.address} (${member.role})`)
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

--rate N            requests per second of every key, or of one key with --key
--send N|unlimited  emails per clock hour of the organisation, or a lower limit for one tenant with --tenant
Takes effect within about two seconds. postrider tenant list and postrider key list print the ids.`,
  options: { rate: { type: 'string' }, send: { type: 'string' }, tenant: { type: 'string' }, key: { type: 'string' }, ...jsonOption },
  async run(given, deps) {
    const [rate, send, tenant, key] = ['rate', 'send', 'tenant', 'key'].map((name) => text(given, name))
    if (rate === undefined && send === undefined) throw new UsageError('give --rate, --send or both')
    if (key !== undefined && send !== undefined) throw new UsageError('--send applies to the organisation or a tenant, not to a key')
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
