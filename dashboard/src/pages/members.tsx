/** Who may sign in: added with a link, given a new one, removed. For owners. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { get, post } from '../api.ts'
import { Badge, Button, Code, Confirm, Copy, Dialog, Field, Heading, Problem, Select, Table } from '../parts/basics.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import type { Member } from '../types.ts'

type Listed = Member & { hasPassword: boolean }
interface Invited {
  member: Member
  signInUrl: string
}

export function MembersPage() {
  const { member: self, tenants } = useHere()
  const [adding, setAdding] = useState(false)
  const [invited, setInvited] = useState<Invited>()
  const [asked, setAsked] = useState<{ what: 'reset' | 'remove'; member: Listed }>()
  const client = useQueryClient()
  const { data, error } = useQuery({ queryKey: ['members'], queryFn: () => get<{ members: Listed[] }>('/dashboard/api/members') })
  const done = () => client.invalidateQueries({ queryKey: ['members'] })
  const act = useMutation({
    mutationFn: ({ what, member }: { what: 'reset' | 'remove'; member: Listed }) =>
      post<Partial<Invited>>(`/dashboard/api/members/${what}`, { address: member.address }),
    onSuccess: async ({ member, signInUrl }) => {
      setAsked(undefined)
      if (member && signInUrl) setInvited({ member, signInUrl })
      await done()
    },
  })
  const tenantName = (id: string | null) => (id === null ? 'all' : (tenants.find((one) => one.id === id)?.name ?? id))
  return (
    <>
      <Heading title={texts.pages.members}>
        <Button kind="main" onClick={() => setAdding(true)}>
          Add member
        </Button>
      </Heading>
      <Problem error={error} />
      {data && (
        <Table label={texts.pages.members} columns={['Address', 'Role', 'Tenant', '']}>
          {data.members.map((one) => (
            <tr key={one.address}>
              <td className="font-medium">
                {one.address} {!one.hasPassword && <Badge tone="wait">Has not signed in</Badge>}
              </td>
              <td>{one.role}</td>
              <td>{tenantName(one.tenantId)}</td>
              <td>
                {one.address !== self.address && (
                  <span className="flex justify-end gap-2">
                    <Button onClick={() => setAsked({ what: 'reset', member: one })}>New link</Button>
                    <Button kind="danger" aria-label={`Remove ${one.address}`} onClick={() => setAsked({ what: 'remove', member: one })}>
                      Remove
                    </Button>
                  </span>
                )}
              </td>
            </tr>
          ))}
        </Table>
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
        <Dialog title={`Sign-in link of ${invited.member.address}`} onClose={() => setInvited(undefined)}>
          <p className="mb-3 text-sm">It works once, within 24 hours, and is not shown again. Send it to them by a way you trust.</p>
          <Code>{invited.signInUrl}</Code>
          <div className="mt-4 flex justify-end gap-2">
            <Copy text={invited.signInUrl} label="Copy link" />
            <Button kind="main" onClick={() => setInvited(undefined)}>
              Done
            </Button>
          </div>
        </Dialog>
      )}
      {asked && (
        <Confirm
          title={asked.what === 'reset' ? `New sign-in link for ${asked.member.address}?` : `Remove ${asked.member.address}?`}
          text={asked.what === 'reset' ? 'Their password stops working and every session of theirs ends.' : 'Every session of theirs ends.'}
          action={asked.what === 'reset' ? 'Make link' : 'Remove'}
          busy={act.isPending}
          error={act.error}
          onYes={() => act.mutate(asked)}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  )
}

const roles = [
  { value: 'viewer', label: 'Viewer: reads, without secrets' },
  { value: 'admin', label: 'Admin: everything but members' },
  { value: 'owner', label: 'Owner: everything' },
] as const

function AddMember({ onClose, onAdded }: { onClose: () => void; onAdded: (made: Invited) => Promise<void> }) {
  const { member: self, tenants } = useHere()
  const [address, setAddress] = useState('')
  const [role, setRole] = useState<string>('viewer')
  const [tenant, setTenant] = useState('')
  const add = useMutation({
    mutationFn: () => post<Invited>('/dashboard/api/members', { address: address.trim(), role, ...(tenant ? { tenantId: tenant } : {}) }),
    onSuccess: onAdded,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  return (
    <Dialog title="Add a member" onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-4">
        <Field label="Email address" type="email" required value={address} onChange={(event) => setAddress(event.target.value)} />
        <Select label="Role" value={role} onChange={setRole} choices={roles} />
        {self.tenantId === null && (
          <Select
            label="Sees"
            value={tenant}
            onChange={setTenant}
            choices={[
              { value: '', label: 'The whole organisation' },
              ...tenants.map(({ id, name }) => ({ value: id, label: `Only ${name}` })),
            ]}
          />
        )}
        <Problem error={add.error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={add.isPending}>
            Add
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
