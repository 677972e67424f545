/** API keys and SMTP logins: made (and shown once), held, revoked. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { patch, post, remove } from '../api.ts'
import { Badge, Button, Field, Heading, Select, Time } from '../parts/basics.tsx'
import { Confirm, FormDialog, Once, Several } from '../parts/dialogs.tsx'
import { Listing, useList } from '../parts/listing.tsx'
import { useFilters } from '../parts/params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { type Key, permissions } from '../types.ts'

export function KeysPage() {
  const { scoped, mayChange, tenantId } = useHere()
  const [adding, setAdding] = useState(false)
  const [revoking, setRevoking] = useState<Key>()
  const client = useQueryClient()
  const [filters] = useFilters()
  const list = useList<Key>('keys', scoped('/v1/credentials', { page: filters.page, perPage: 100 }))
  const refresh = () => client.invalidateQueries({ queryKey: ['keys'] })
  const hold = useMutation({
    mutationFn: (one: Key) => patch(scoped(`/v1/credentials/${one.id}`), { hold: !one.hold }),
    onSuccess: refresh,
  })
  return (
    <>
      <Heading title={texts.pages.keys}>
        {mayChange && (
          <Button kind="main" onClick={() => setAdding(true)}>
            Create key
          </Button>
        )}
      </Heading>
      <p className="mb-4 text-sm text-soft">
        {tenantId === undefined ? 'Keys of the organisation, which may act for every tenant.' : 'Keys of this tenant.'}
      </p>
      <Listing
        label={texts.pages.keys}
        list={list}
        error={hold.error}
        columns={['Name', 'Key', 'Kind', 'May', 'Last used', '']}
        empty="No keys here."
        row={(one) => (
          <tr key={one.id}>
            <td className="font-medium">
              {one.name} {one.hold && <Badge tone="wait">On hold</Badge>}
            </td>
            <td className="font-mono text-xs">{one.keyPrefix}…</td>
            <td>
              <Badge tone={one.mode === 'live' ? 'good' : 'none'}>{one.type === 'smtp' ? 'smtp' : one.mode}</Badge>
            </td>
            <td className="min-w-40">{one.permissions?.join(', ') ?? 'everything'}</td>
            <td>{one.lastUsedAt ? <Time at={one.lastUsedAt} /> : 'never'}</td>
            <td>
              {mayChange && (
                <span className="flex justify-end gap-2">
                  <Button onClick={() => hold.mutate(one)}>{one.hold ? 'Release' : 'Hold'}</Button>
                  <Button kind="danger" aria-label={`Revoke ${one.name}`} onClick={() => setRevoking(one)}>
                    Revoke
                  </Button>
                </span>
              )}
            </td>
          </tr>
        )}
      />
      {adding && <CreateKey onClose={() => setAdding(false)} onMade={refresh} />}
      {revoking && (
        <Confirm
          title={`Revoke ${revoking.name}?`}
          text="Whoever uses this key is refused within a second, for good."
          action="Revoke"
          run={() => remove(scoped(`/v1/credentials/${revoking.id}`))}
          onDone={async () => {
            setRevoking(undefined)
            await refresh()
          }}
          onClose={() => setRevoking(undefined)}
        />
      )}
    </>
  )
}

const kinds = [
  { value: 'test', label: 'API, test: nothing leaves this machine' },
  { value: 'live', label: 'API, live' },
  { value: 'smtp', label: 'SMTP login (of a tenant)' },
] as const

function CreateKey({ onClose, onMade }: { onClose: () => void; onMade: () => Promise<void> }) {
  const { inBody } = useHere()
  const [name, setName] = useState('')
  const [kind, setKind] = useState<string>('test')
  const [allowed, setAllowed] = useState<string[]>([])
  const [made, setMade] = useState<Key>()
  if (made) {
    return (
      <Once title={`Key ${made.name}`} text={texts.keyOnce} secret={made.key ?? ''} copy="Copy key" onClose={onClose}>
        {made.smtpUsername && <p className="mt-2 text-sm">User name: {made.smtpUsername}</p>}
      </Once>
    )
  }
  return (
    <FormDialog
      title="Create a key"
      action="Create"
      run={() =>
        post<Key>('/v1/credentials', {
          name,
          ...(kind === 'smtp' ? { type: 'smtp' } : { type: 'api', mode: kind }),
          ...(allowed.length === 0 ? {} : { permissions: allowed }),
          ...inBody,
        })
      }
      onDone={async (key) => {
        setMade(key)
        await onMade()
      }}
      onClose={onClose}
    >
      <Field
        label="Name"
        required
        pattern="[a-zA-Z0-9_\-]{1,50}"
        help="1 to 50 letters, digits, _ or -"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Select label="Kind" value={kind} onChange={setKind} choices={kinds} />
      <Several legend="May (none chosen: everything)" choices={permissions} chosen={allowed} onChange={setAllowed} />
    </FormDialog>
  )
}
