/** API keys and SMTP logins: made (and shown once), held, revoked. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { getPage, patch, post, remove } from '../api.ts'
import { Badge, Button, Code, Confirm, Copy, Dialog, Empty, Field, Heading, Problem, Select, Table, Time } from '../parts/basics.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { type Key, permissions } from '../types.ts'

export function KeysPage() {
  const { scoped, mayChange, tenantId } = useHere()
  const [adding, setAdding] = useState(false)
  const [revoking, setRevoking] = useState<Key>()
  const client = useQueryClient()
  const path = scoped('/v1/credentials', { perPage: 100 })
  const { data, error } = useQuery({ queryKey: ['keys', path], queryFn: () => getPage<Key>(path) })
  const refresh = () => client.invalidateQueries({ queryKey: ['keys'] })
  const hold = useMutation({
    mutationFn: (one: Key) => patch(scoped(`/v1/credentials/${one.id}`), { hold: !one.hold }),
    onSuccess: refresh,
  })
  const revoke = useMutation({
    mutationFn: (one: Key) => remove(scoped(`/v1/credentials/${one.id}`)),
    onSuccess: async () => {
      setRevoking(undefined)
      await refresh()
    },
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
      <Problem error={error ?? hold.error} />
      {data?.total === 0 && <Empty>No keys here.</Empty>}
      {data && data.items.length > 0 && (
        <Table label={texts.pages.keys} columns={['Name', 'Key', 'Kind', 'May', 'Last used', '']}>
          {data.items.map((one) => (
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
          ))}
        </Table>
      )}
      {adding && <CreateKey onClose={() => setAdding(false)} onMade={refresh} />}
      {revoking && (
        <Confirm
          title={`Revoke ${revoking.name}?`}
          text="Whoever uses this key is refused within a second, for good."
          action="Revoke"
          busy={revoke.isPending}
          error={revoke.error}
          onYes={() => revoke.mutate(revoking)}
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
  const create = useMutation({
    mutationFn: () =>
      post<Key>('/v1/credentials', {
        name,
        ...(kind === 'smtp' ? { type: 'smtp' } : { type: 'api', mode: kind }),
        ...(allowed.length === 0 ? {} : { permissions: allowed }),
        ...inBody,
      }),
    onSuccess: onMade,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  const made = create.data
  if (made) {
    return (
      <Dialog title={`Key ${made.name}`} onClose={onClose}>
        <p className="mb-3 text-sm">{texts.keyOnce}</p>
        <Code>{made.key ?? ''}</Code>
        {made.smtpUsername && <p className="mt-2 text-sm">User name: {made.smtpUsername}</p>}
        <div className="mt-4 flex justify-end gap-2">
          <Copy text={made.key ?? ''} label="Copy key" />
          <Button kind="main" onClick={onClose}>
            Done
          </Button>
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog title="Create a key" onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-4">
        <Field
          label="Name"
          required
          pattern="[a-zA-Z0-9_\-]{1,50}"
          help="1 to 50 letters, digits, _ or -"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <Select label="Kind" value={kind} onChange={setKind} choices={kinds} />
        <fieldset>
          <legend className="text-sm font-medium">May (none chosen: everything)</legend>
          {permissions.map((one) => (
            <label key={one} className="flex items-center gap-2 py-0.5 text-sm">
              <input
                type="checkbox"
                checked={allowed.includes(one)}
                onChange={(event) => setAllowed(event.target.checked ? [...allowed, one] : allowed.filter((other) => other !== one))}
              />
              {one}
            </label>
          ))}
        </fieldset>
        <Problem error={create.error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={create.isPending}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
