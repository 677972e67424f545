/** Members: their rights and the time of their last visit; added with a sign-in link. For owners. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, post } from '../api-client.ts'
import type { InvitationResponse, MembersResponse, ShownListedMember, ShownMember } from '../api-types.ts'
import { Confirm, FormDialog, Once } from '../parts/action-dialogs.tsx'
import { Badge, Button, Empty, Heading, Problem } from '../parts/basic-components.tsx'
import { type Column, DataTable, TableSkeleton } from '../parts/data-table.tsx'
import { Choices, Field, Select } from '../parts/form-controls.tsx'
import { WarningIcon } from '../parts/icons.tsx'
import { Initials, Roles } from '../parts/member-identity.tsx'
import { Menu } from '../parts/menu.tsx'
import { QuietState } from '../parts/quiet-state.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

type Confirmed = 'reset' | 'reset-second-factor' | 'remove'
type What = Confirmed | 'role'

const { members: words } = texts

/** Long because the dialogs share the asked member. */
export function MembersPage() {
  const [adding, setAdding] = useState(false)
  const [invited, setInvited] = useState<InvitationResponse>()
  const [opened, setOpened] = useState<{ what: What; member: ShownListedMember }>()
  const client = useQueryClient()
  const { data, error } = useQuery({ queryKey: ['members'], queryFn: () => get<MembersResponse>('/dashboard/api/members') })
  const done = () => client.invalidateQueries({ queryKey: ['members'] })
  const columns = useColumns(data?.members ?? [], (what, member) => setOpened({ what, member }))
  const add = (
    <Button kind="main" onClick={() => setAdding(true)}>
      {words.add}
    </Button>
  )
  const isAlone = data?.members.length === 1
  const { member: self } = useHere()
  const mayTurnOn = data?.members.some((one) => isSame(one, self) && !one.hasSecondFactor) ?? false
  // An invited member cannot sign in yet.
  const active = (data?.members ?? []).filter(({ hasPassword }) => hasPassword)
  const insecure = active.filter(({ hasSecondFactor }) => !hasSecondFactor).length
  return (
    <>
      <Heading title={texts.pages.members} about={words.about}>
        {!isAlone && add}
      </Heading>
      <Problem error={error} />
      {!data && !error && <TableSkeleton rows={3} />}
      {data && insecure > 0 && (
        <p className="mb-4 flex gap-x-2.5 rounded-lg bg-wait-back px-3 py-2 text-sm text-wait">
          <WarningIcon size={16} className="mt-0.5 shrink-0" />
          <span>
            {words.insecure(insecure, active.length)}{' '}
            {mayTurnOn && (
              <Link to="/settings" search={{}} className="font-medium underline underline-offset-2">
                {words.toSettings}
              </Link>
            )}
          </span>
        </p>
      )}
      {data && (
        <DataTable
          label={texts.pages.members}
          columns={columns}
          items={inOrder(data.members, self)}
          keyOf={(one) => `${one.address} ${one.tenantId}`}
          isWhole
        />
      )}
      {data && <Roles />}
      {isAlone && (
        <div className="mt-4">
          <Empty title={words.alone} action={add}>
            {words.aloneHelp}
          </Empty>
        </div>
      )}
      {adding && (
        <AddMember
          onClose={() => setAdding(false)}
          onAdded={async (made) => {
            setAdding(false)
            setInvited(made)
            await done()
          }}
        />
      )}
      {invited && (
        <Once
          title={words.linkOf(invited.member.address)}
          text={words.linkText}
          secret={invited.signInUrl}
          copy={words.copyLink}
          onClose={() => setInvited(undefined)}
        />
      )}
      {opened?.what === 'role' && (
        <ChangeRole
          member={opened.member}
          onDone={async () => {
            setOpened(undefined)
            await done()
          }}
          onClose={() => setOpened(undefined)}
        />
      )}
      {opened && opened.what !== 'role' && (
        <AskedDialog
          what={opened.what}
          member={opened.member}
          onDone={async ({ member, signInUrl }) => {
            setOpened(undefined)
            if (member && signInUrl) setInvited({ member, signInUrl })
            await done()
          }}
          onClose={() => setOpened(undefined)}
        />
      )}
    </>
  )
}

const isSame = (a: ShownMember, b: ShownMember) => a.address === b.address && a.tenantId === b.tenantId

const ranks = { owner: 1, admin: 2, viewer: 3 } as const
const invitedRank = 4

/** The reader first, then by role, those who have not signed in last. */
function inOrder(members: readonly ShownListedMember[], self: ShownMember): readonly ShownListedMember[] {
  const rankOf = (one: ShownListedMember) => (isSame(one, self) ? 0 : one.hasPassword ? ranks[one.role] : invitedRank)
  return members.toSorted((a, b) => rankOf(a) - rankOf(b) || a.address.localeCompare(b.address))
}

/** Long because each column is an element of one list. */
function useColumns(
  members: readonly ShownListedMember[],
  onAsk: (what: What, member: ShownListedMember) => void,
): readonly Column<ShownListedMember>[] {
  const { member: self, tenants } = useHere()
  const { names } = words
  const accessOf = (id: string | null) => (id === null ? words.organisation : (tenants.find((one) => one.id === id)?.name ?? id))
  const isSameAccess = members.every(({ tenantId }) => tenantId === members[0]?.tenantId)
  const access: Column<ShownListedMember> = {
    name: names.access,
    phone: 'line',
    by: (one) => accessOf(one.tenantId),
    cell: (one) => accessOf(one.tenantId),
  }
  const isSelf = (one: ShownListedMember) => isSame(one, self)
  return [
    {
      name: names.address,
      phone: 'title',
      className: 'font-medium [overflow-wrap:anywhere]',
      by: (one) => one.address,
      cell: (one) => (
        <span className="flex items-center gap-x-2.5 md:-my-1">
          <Initials of={one} />
          <span className="flex min-w-0 flex-wrap items-center gap-x-2">
            {one.address} {isSelf(one) && <Badge tone="none">{words.you}</Badge>}
          </span>
        </span>
      ),
    },
    {
      name: names.role,
      phone: 'side',
      by: (one) => one.role,
      cell: (one) => (
        <Badge tone="none" title={words.roles[one.role]}>
          {words.roleNames[one.role]}
        </Badge>
      ),
    },
    {
      name: names.status,
      phone: 'line',
      by: (one) => Number(one.hasPassword),
      isUsual: (one) => one.hasPassword,
      cell: (one) => <Status of={one} />,
    },
    ...(isSameAccess ? [] : [access]),
    {
      name: names.secondFactor,
      phone: 'line',
      by: (one) => Number(one.hasSecondFactor),
      isUsual: (one) => !one.hasPassword,
      cell: (one) => <Factor of={one} />,
    },
    {
      name: names.lastSeen,
      phone: 'line',
      by: (one) => one.lastSeenAt ?? '',
      isUsual: (one) => one.lastSeenAt === null,
      cell: (one) => <LastSeen of={one} />,
    },
    { name: names.added, phone: 'none', className: 'text-soft', by: (one) => one.createdAt, cell: (one) => <Time at={one.createdAt} /> },
    {
      name: texts.table.actions,
      isUnnamed: true,
      phone: 'menu',
      className: 'md:text-right',
      cell: (one) => (isSelf(one) ? <OwnMenu of={one} /> : <MemberMenu of={one} onAsk={(what) => onAsk(what, one)} />),
    },
  ]
}

/** A member who has no password has not used the sign-in link yet, which works until it ends. */
function Status({ of: { hasPassword, invitedUntil } }: { of: ShownListedMember }) {
  if (hasPassword) return <QuietState>{words.active}</QuietState>
  const isOver = invitedUntil === null || Date.parse(invitedUntil) <= Date.now()
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2">
      <Badge tone={isOver ? 'bad' : 'wait'} title={words.invitedMeans}>
        {isOver ? words.expired : words.invited}
      </Badge>
      {invitedUntil && !isOver && (
        <span className="text-xs text-soft">
          {words.ends} <Time at={invitedUntil} />
        </span>
      )}
    </span>
  )
}

function Factor({ of: { hasPassword, hasSecondFactor } }: { of: ShownListedMember }) {
  if (!hasPassword) return <span className="text-soft">–</span>
  return hasSecondFactor ? (
    <QuietState>{words.isOn}</QuietState>
  ) : (
    <span className="text-wait">
      <span className="max-md:hidden">{words.isOff}</span>
      <span className="md:hidden">{words.withoutFactor}</span>
    </span>
  )
}

function LastSeen({ of: { hasPassword, lastSeenAt } }: { of: ShownListedMember }) {
  if (lastSeenAt)
    return (
      <>
        <span className="text-soft md:hidden">{words.activeShort} </span>
        <Time at={lastSeenAt} />
      </>
    )
  return <span className="text-soft">{hasPassword ? words.signedOut : '–'}</span>
}

const MemberMenu = ({ of: one, onAsk }: { of: ShownListedMember; onAsk: (what: What) => void }) => (
  <Menu
    label={words.actionsOf(one.address)}
    actions={[
      { label: words.changeRole, onChoose: () => onAsk('role') },
      { label: words.newLink, onChoose: () => onAsk('reset') },
      ...(one.hasSecondFactor ? [{ label: words.takeAway, onChoose: () => onAsk('reset-second-factor') }] : []),
      { label: words.remove, isDanger: true, onChoose: () => onAsk('remove') },
    ]}
  />
)

/** The own account is changed on the page of settings. */
function OwnMenu({ of: one }: { of: ShownListedMember }) {
  const navigate = useNavigate()
  return (
    <Menu
      label={words.actionsOf(one.address)}
      actions={[{ label: words.ownPassword, onChoose: () => void navigate({ to: '/settings', search: {} }) }]}
    />
  )
}

function AskedDialog(props: {
  what: Confirmed
  member: ShownListedMember
  onDone: (made: Partial<InvitationResponse>) => Promise<void>
  onClose: () => void
}) {
  const { what, member, ...doing } = props
  const { title, text, action } = words.asks[what]
  return (
    <Confirm
      title={title(member.address)}
      text={text}
      action={action}
      run={() =>
        post<Partial<InvitationResponse>>(`/dashboard/api/members/${what}`, { address: member.address, tenantId: member.tenantId })
      }
      {...doing}
    />
  )
}

const roles = (['viewer', 'admin', 'owner'] as const).map((value) => ({ value, label: words.roleNames[value], about: words.roles[value] }))

function ChangeRole({ member, onDone, onClose }: { member: ShownListedMember; onDone: () => Promise<void>; onClose: () => void }) {
  const [role, setRole] = useState<string>(member.role)
  return (
    <FormDialog
      title={words.roleTitle(member.address)}
      action={texts.actions.save}
      run={() => post('/dashboard/api/members/role', { address: member.address, tenantId: member.tenantId, role })}
      onDone={onDone}
      onClose={onClose}
    >
      <Choices legend={words.role} value={role} onChange={setRole} choices={roles} />
    </FormDialog>
  )
}

function AddMember({ onClose, onAdded }: { onClose: () => void; onAdded: (made: InvitationResponse) => Promise<void> }) {
  const { member: self, tenants } = useHere()
  const [address, setAddress] = useState('')
  const [role, setRole] = useState<string>('viewer')
  const [tenant, setTenant] = useState('')
  return (
    <FormDialog
      title={words.addTitle}
      action={texts.actions.add}
      run={() =>
        post<InvitationResponse>('/dashboard/api/members', { address: address.trim(), role, ...(tenant ? { tenantId: tenant } : {}) })
      }
      onDone={onAdded}
      onClose={onClose}
    >
      <Field label={texts.signIn.address} type="email" required value={address} onChange={(event) => setAddress(event.target.value)} />
      <Choices legend={words.role} value={role} onChange={setRole} choices={roles} />
      {self.tenantId === null && (
        <Select
          label={words.names.access}
          value={tenant}
          onChange={setTenant}
          choices={[
            { value: '', label: words.organisation },
            ...tenants.map(({ id, name }) => ({ value: id, label: words.onlyTenant(name) })),
          ]}
        />
      )}
      <p className="text-sm text-soft">{words.addHelp}</p>
    </FormDialog>
  )
}
