/** Members: added with a sign-in link, given a new link, removed. For owners. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { get, post } from '../api-client.ts'
import type { InvitationResponse, MembersResponse, ShownListedMember } from '../api-types.ts'
import { Confirm, FormDialog, Once } from '../parts/action-dialogs.tsx'
import { Badge, Button, Heading, Problem } from '../parts/basic-components.tsx'
import { type Column, DataTable, TableSkeleton } from '../parts/data-table.tsx'
import { Field, Select } from '../parts/form-controls.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

type What = 'reset' | 'reset-second-factor' | 'remove'

const { members: words } = texts

export function MembersPage() {
  const [adding, setAdding] = useState(false)
  const [invited, setInvited] = useState<InvitationResponse>()
  const [asked, setAsked] = useState<{ what: What; member: ShownListedMember }>()
  const client = useQueryClient()
  const { data, error } = useQuery({ queryKey: ['members'], queryFn: () => get<MembersResponse>('/dashboard/api/members') })
  const done = () => client.invalidateQueries({ queryKey: ['members'] })
  const columns = useColumns((what, member) => setAsked({ what, member }))
  return (
    <>
      <Heading title={texts.pages.members}>
        <Button kind="main" onClick={() => setAdding(true)}>
          {words.add}
        </Button>
      </Heading>
      <Problem error={error} />
      {!data && !error && <TableSkeleton rows={3} />}
      {data && (
        <DataTable
          label={texts.pages.members}
          columns={columns}
          items={data.members}
          keyOf={(one) => `${one.address} ${one.tenantId}`}
          isWhole
        />
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
      {asked && (
        <AskedDialog
          {...asked}
          onDone={async ({ member, signInUrl }) => {
            setAsked(undefined)
            if (member && signInUrl) setInvited({ member, signInUrl })
            await done()
          }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  )
}

function useColumns(onAsk: (what: What, member: ShownListedMember) => void): readonly Column<ShownListedMember>[] {
  const { member: self, tenants } = useHere()
  const tenantName = (id: string | null) => (id === null ? words.allTenants : (tenants.find((one) => one.id === id)?.name ?? id))
  const isSelf = (one: ShownListedMember) => one.address === self.address && one.tenantId === self.tenantId
  return [
    {
      name: words.names.address,
      phone: 'title',
      className: 'font-medium [overflow-wrap:anywhere]',
      by: (one) => one.address,
      cell: (one) => (
        <>
          {one.address} {!one.hasPassword && <Badge tone="wait">{words.notYet}</Badge>}{' '}
          {one.hasSecondFactor && <Badge tone="good">{words.has}</Badge>}
        </>
      ),
    },
    { name: words.names.role, phone: 'side', by: (one) => one.role, cell: (one) => one.role },
    {
      name: words.names.tenant,
      className: 'text-soft',
      by: (one) => tenantName(one.tenantId),
      cell: (one) => tenantName(one.tenantId),
    },
    {
      name: texts.table.actions,
      isUnnamed: true,
      phone: 'line',
      cell: (one) => !isSelf(one) && <MemberActions of={one} onAsk={(what) => onAsk(what, one)} />,
    },
  ]
}

const MemberActions = ({ of: one, onAsk }: { of: ShownListedMember; onAsk: (what: What) => void }) => (
  <span className="flex flex-wrap gap-1.5 max-md:mt-1 md:justify-end">
    {one.hasSecondFactor && (
      <Button small onClick={() => onAsk('reset-second-factor')}>
        {words.takeAway}
      </Button>
    )}
    <Button small onClick={() => onAsk('reset')}>
      {words.newLink}
    </Button>
    <Button small kind="danger" aria-label={words.removeOf(one.address)} onClick={() => onAsk('remove')}>
      {words.remove}
    </Button>
  </span>
)

function AskedDialog(props: {
  what: What
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

const roles = [
  { value: 'viewer', label: words.roles.viewer },
  { value: 'admin', label: words.roles.admin },
  { value: 'owner', label: words.roles.owner },
] as const

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
      <Select label={words.role} value={role} onChange={setRole} choices={roles} />
      {self.tenantId === null && (
        <Select
          label={words.sees}
          value={tenant}
          onChange={setTenant}
          choices={[
            { value: '', label: words.organisation },
            ...tenants.map(({ id, name }) => ({ value: id, label: words.onlyTenant(name) })),
          ]}
        />
      )}
    </FormDialog>
  )
}
