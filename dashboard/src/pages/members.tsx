/** Members: their rights and the time of their last visit; added with a sign-in link. For owners. */
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, post, withQuery } from '../api-client.ts'
import type { InvitationResponse, MembersResponse, ShownListedMember, ShownMember } from '../api-types.ts'
import { Confirm, FormDialog, Once } from '../parts/action-dialogs.tsx'
import { AddMember, roleChoices } from '../parts/add-member.tsx'
import { Badge, Button, Empty, Heading, Problem } from '../parts/basic-components.tsx'
import { type Column, DataTable, TableSkeleton } from '../parts/data-table.tsx'
import { Choices } from '../parts/form-controls.tsx'
import { WarningIcon } from '../parts/icons.tsx'
import { LiveSearch } from '../parts/live-search.tsx'
import { Initials, isActive, Roles } from '../parts/member-identity.tsx'
import { Factor, LastSeen, Status } from '../parts/member-states.tsx'
import { Menu } from '../parts/menu.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { toast } from '../parts/toast.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

/** `reset-account`: a reset that makes no link. */
type Confirmed = 'reset' | 'reset-account' | 'reset-second-factor' | 'remove'
type What = Confirmed | 'role'

const { members: words } = texts

/** Long because the dialogs share the asked member. */
export function MembersPage() {
  const [adding, setAdding] = useState(false)
  const [invited, setInvited] = useState<{ member: ShownMember; signInUrl: string }>()
  const [opened, setOpened] = useState<{ what: What; member: ShownListedMember }>()
  const client = useQueryClient()
  const [search, setSearch] = useState('')
  const { data, error } = useQuery({
    queryKey: ['members', search],
    queryFn: () => get<MembersResponse>(withQuery('/dashboard/api/members', { search: search || undefined })),
    placeholderData: keepPreviousData,
  })
  const done = () => client.invalidateQueries({ queryKey: ['members'] })
  const passwordSignIn = data?.passwordSignIn ?? true
  const invite = async ({ member, signInUrl }: Partial<InvitationResponse>, doneWords: (address: string) => string) => {
    if (member && signInUrl) setInvited({ member, signInUrl })
    if (member && signInUrl === null) toast(doneWords(member.address))
    await done()
  }
  const columns = useColumns(data, (what, member) => setOpened({ what, member }))
  const add = (
    <Button kind="main" onClick={() => setAdding(true)}>
      {words.add}
    </Button>
  )
  const isPart = search !== '' || data?.isCut === true
  const isAlone = data?.members.length === 1 && !isPart
  const { member: self } = useHere()
  return (
    <>
      <Heading title={texts.pages.members} about={passwordSignIn || self.tenantId !== null ? words.about : words.aboutProvider}>
        {!isAlone && add}
      </Heading>
      <Problem error={error} />
      {!data && !error && <TableSkeleton rows={3} />}
      {data && <InsecureWarning members={data.members} isPart={isPart} />}
      {isPart && (
        <div className="mb-4 flex flex-wrap items-center gap-x-3 gap-y-2">
          <LiveSearch label={words.search} example={words.search} text={search} onSearch={setSearch} />
          {data?.isCut && <p className="text-sm text-soft">{words.cut(data.members.length)}</p>}
        </div>
      )}
      {data?.members.length === 0 && <Empty>{words.none}</Empty>}
      {data && data.members.length > 0 && (
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
          passwordSignIn={passwordSignIn}
          onClose={() => setAdding(false)}
          onAdded={async (made) => {
            setAdding(false)
            await invite(made, words.addedByProvider)
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
      {opened && (
        <OpenedDialog
          {...opened}
          onDone={async (made) => {
            setOpened(undefined)
            await invite(made, words.accountReset)
          }}
          onClose={() => setOpened(undefined)}
        />
      )}
    </>
  )
}

/** Says how many members sign in with a password alone. */
function InsecureWarning({ members, isPart }: { members: readonly ShownListedMember[]; isPart: boolean }) {
  const { member: self } = useHere()
  const isInsecure = ({ signsInWith, hasSecondFactor }: ShownListedMember) => signsInWith === 'password' && !hasSecondFactor
  // An invited member cannot sign in yet. The identity provider has its own second factor.
  const active = members.filter(isActive)
  const insecure = active.filter(isInsecure).length
  if (insecure === 0) return null
  return (
    <p className="mb-4 flex gap-x-2.5 rounded-lg bg-wait-back px-3 py-2 text-sm text-wait">
      <WarningIcon size={16} className="mt-0.5 shrink-0" />
      <span>
        {(isPart ? words.insecureShown : words.insecure)(insecure, active.length)}{' '}
        {members.some((one) => isSame(one, self) && isInsecure(one)) && (
          <Link to="/settings" search={{}} className="font-medium underline underline-offset-2">
            {words.toSettings}
          </Link>
        )}
      </span>
    </p>
  )
}

const isSame = (a: ShownMember, b: ShownMember) => a.address === b.address && a.tenantId === b.tenantId

const ranks = { owner: 1, admin: 2, viewer: 3 } as const
const invitedRank = 4

/** The reader first, then by role, those who have not signed in last. */
function inOrder(members: readonly ShownListedMember[], self: ShownMember): readonly ShownListedMember[] {
  const rankOf = (one: ShownListedMember) => (isSame(one, self) ? 0 : isActive(one) ? ranks[one.role] : invitedRank)
  return members.toSorted((a, b) => rankOf(a) - rankOf(b) || a.address.localeCompare(b.address))
}

/** Long because each column is an element of one list. */
function useColumns(
  data: MembersResponse | undefined,
  onAsk: (what: What, member: ShownListedMember) => void,
): readonly Column<ShownListedMember>[] {
  const { member: self, tenants } = useHere()
  const { names } = words
  const accessOf = (id: string | null) => (id === null ? words.organisation : (tenants.find((one) => one.id === id)?.name ?? id))
  const { members = [], passwordSignIn = true } = data ?? {}
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
      by: (one) => Number(isActive(one)),
      isUsual: isActive,
      cell: (one) => <Status of={one} />,
    },
    ...(isSameAccess ? [] : [access]),
    {
      name: names.secondFactor,
      phone: 'line',
      by: (one) => Number(one.hasSecondFactor),
      isUsual: (one) => one.signsInWith === 'provider' || !isActive(one),
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
      cell: (one) =>
        isSelf(one) ? (
          <OwnMenu of={one} />
        ) : (
          <MemberMenu of={one} takesLink={passwordSignIn || one.tenantId !== null} onAsk={(what) => onAsk(what, one)} />
        ),
    },
  ]
}

const MemberMenu = ({ of: one, takesLink, onAsk }: { of: ShownListedMember; takesLink: boolean; onAsk: (what: What) => void }) => (
  <Menu
    label={words.actionsOf(one.address)}
    actions={[
      { label: words.changeRole, onChoose: () => onAsk('role') },
      ...(takesLink ? [{ label: words.newLink, onChoose: () => onAsk('reset') }] : []),
      ...(!takesLink && one.hasAccount ? [{ label: words.resetAccount, onChoose: () => onAsk('reset-account') }] : []),
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
      actions={[
        {
          label: one.signsInWith === 'password' ? words.ownPassword : texts.pages.settings,
          onChoose: () => void navigate({ to: '/settings', search: {} }),
        },
      ]}
    />
  )
}

interface DialogProps {
  member: ShownListedMember
  onDone: (made: Partial<InvitationResponse>) => Promise<void>
  onClose: () => void
}

const OpenedDialog = ({ what, ...props }: DialogProps & { what: What }) =>
  what === 'role' ? <ChangeRole {...props} onDone={() => props.onDone({})} /> : <AskedDialog {...props} what={what} />

function AskedDialog({ what, member, ...doing }: DialogProps & { what: Confirmed }) {
  const { title, text, action } = words.asks[what === 'reset' && member.hasAccount ? 'reset-bound' : what]
  const path = what === 'reset-account' ? 'reset' : what
  return (
    <Confirm
      title={title(member.address)}
      text={text}
      action={action}
      run={() =>
        post<Partial<InvitationResponse>>(`/dashboard/api/members/${path}`, { address: member.address, tenantId: member.tenantId })
      }
      {...doing}
    />
  )
}

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
      <Choices legend={words.role} value={role} onChange={setRole} choices={roleChoices} />
    </FormDialog>
  )
}
