/** Commands for the members who can sign in to the dashboard. */
import type { Installation } from '#installation'
import { parseAddress } from '#mail'
import { addMember, changeRole, listMembers, type Role, removeMember, resetMember, resetSecondFactor, roles, takesPassword } from '#members'
import { givenTenant } from './command-arguments.ts'
import {
  type Command,
  type CommandArguments,
  type CommandDeps,
  jsonOption,
  needed,
  printed,
  text,
  UsageError,
} from './command-definition.ts'

function roleIn(words: string): Role {
  const role = roles.find((one) => one === words)
  if (!role) throw new UsageError(`--role must be one of ${roles.join(', ')}`)
  return role
}

/** Without a link for a member for whom the service would refuse it. */
function printLink(
  { member, signInToken }: Awaited<ReturnType<typeof addMember>>,
  { config }: Installation,
  given: CommandArguments,
  deps: CommandDeps,
): void {
  const signInUrl = takesPassword(member, config.passwordSignIn) ? `${config.publicUrl}/sign-in/${signInToken}` : null
  const next = signInUrl ?? 'signs in with the identity provider, with this address (POSTRIDER_PASSWORD_SIGN_IN is off)'
  printed(given, deps, { ...member, signInUrl }, `${member.address} (${member.role})\n${next}`)
}

const facts = (installation: Installation) => ({ nowMs: installation.clock.nowMs(), ids: installation.ids })

export const memberAdd: Command = {
  name: 'member add',
  audited: true,
  summary: 'add a member; members of the organisation can receive sandbox mail',
  help: `postrider member add ADDRESS [--role owner|admin|viewer] [--tenant ID] [--json]

Adds a member and prints a sign-in link that works once, within 24 hours. With --tenant, the member sees only that tenant and cannot
receive sandbox mail.`,
  options: { role: { type: 'string' }, tenant: { type: 'string' }, ...jsonOption },
  values: { role: roles },
  positionals: ['ADDRESS'],
  async run(given, deps) {
    const address = parseAddress(given.positionals[0] as string)
    if (!address) throw new UsageError(`"${given.positionals[0]}" is not an email address`)
    const role = roleIn(text(given, 'role') ?? 'viewer')
    await deps.withInstallation(async (installation) => {
      const tenantId = (await givenTenant(given, installation)) ?? null
      const added = await installation.db.transaction((tx) => addMember(tx, { address: address.text, role, tenantId }, facts(installation)))
      printLink(added, installation, given, deps)
    })
  },
}

export const memberList: Command = {
  name: 'member list',
  summary: 'list members',
  help: 'postrider member list [--json]\n\nLists the members who can sign in to the dashboard, with role and tenant.',
  options: { ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async ({ db, config }) => {
      const { members, isCut } = await listMembers(db, { tenantId: null }, config.passwordSignIn)
      const lines = members.map((one) => `${one.address}  ${one.role}${one.tenantId === null ? '' : ` of tenant ${one.tenantId}`}`)
      if (isCut) lines.push(`only the first ${members.length} members are listed. The dashboard finds others by address`)
      printed(given, deps, { members, isCut }, lines.join('\n') || 'no members. To add one: postrider member add ADDRESS --role owner')
    }),
}

/** null: the organisation; undefined: not given. */
const meantTenant = async (given: CommandArguments, installation: Installation): Promise<string | null | undefined> =>
  text(given, 'tenant') === 'organisation' ? null : givenTenant(given, installation)

export const memberUpdate: Command = {
  name: 'member update',
  audited: true,
  summary: 'change the role of a member',
  help: `postrider member update ADDRESS --role owner|admin|viewer [--tenant ID|organisation] [--json]

Changes the role of a member. Sessions go on with the new role within one second.
--tenant  selects the member if the address belongs to several

Example: postrider member update ann@example.com --role admin`,
  options: { role: { type: 'string' }, tenant: { type: 'string' }, ...jsonOption },
  values: { role: roles },
  positionals: ['ADDRESS'],
  async run(given, deps) {
    const address = given.positionals[0] as string
    const role = roleIn(needed(given, 'role'))
    await deps.withInstallation(async (installation) => {
      const tenantId = await meantTenant(given, installation)
      const member = await installation.db.transaction((tx) => changeRole(tx, address, tenantId, role))
      printed(given, deps, { ...member }, `${member.address} (${member.role})`)
    })
  },
}

export const memberRemove: Command = {
  name: 'member remove',
  audited: true,
  summary: 'remove a member and end all sessions of the member',
  help: `postrider member remove ADDRESS [--tenant ID|organisation] [--json]

Removes a member and ends all sessions of the member within one second.
--tenant  selects the member if the address belongs to several`,
  options: { tenant: { type: 'string' }, ...jsonOption },
  positionals: ['ADDRESS'],
  async run(given, deps) {
    const address = given.positionals[0] as string
    await deps.withInstallation(async (installation) => {
      const tenantId = await meantTenant(given, installation)
      const member = await installation.db.transaction((tx) => removeMember(tx, address, tenantId))
      printed(given, deps, { ...member, removed: true }, `${member.address} is removed`)
    })
  },
}

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
      const reset = await installation.db.transaction((tx) => resetMember(tx, address, tenantId, facts(installation)))
      printLink(reset, installation, given, deps)
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
