/** API keys and SMTP logins: created (shown once), held, revoked. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { patch, post, remove } from '../api-client.ts'
import { type Credential, permissions } from '../api-types.ts'
import { Confirm, FormDialog, Once, Several } from '../parts/action-dialogs.tsx'
import { Badge, Button, Field, Heading, Select, Time } from '../parts/basic-components.tsx'
import { Listing, useList } from '../parts/paged-lists.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.keys

export function KeysPage() {
  const { scoped, mayChange, tenantId, ofAll } = useHere()
  const [adding, setAdding] = useState(false)
  const [revoking, setRevoking] = useState<Credential>()
  const client = useQueryClient()
  const [filters] = useFilters()
  const list = useList<Credential>('keys', scoped('/v1/credentials', { page: filters.page, perPage: 100, ...ofAll }))
  const refresh = () => client.invalidateQueries({ queryKey: ['keys'] })
  const hold = useMutation({
    mutationFn: (one: Credential) => patch(scoped(`/v1/credentials/${one.id}`), { hold: !one.hold }),
    onSuccess: refresh,
  })
  return (
    <>
      <Heading title={texts.pages.keys}>
        {mayChange && (
          <Button kind="main" onClick={() => setAdding(true)}>
            {words.add}
          </Button>
        )}
      </Heading>
      <p className="mb-4 text-sm text-soft">{tenantId === undefined ? words.ofAll : words.ofTenant}</p>
      <Listing
        label={texts.pages.keys}
        list={list}
        error={hold.error}
        columns={tenantId === undefined ? words.columnsOfAll : words.columns}
        empty={words.empty}
        row={(one) => <KeyRow key={one.id} of={one} onHold={() => hold.mutate(one)} onRevoke={() => setRevoking(one)} />}
      />
      {adding && <CreateKey onClose={() => setAdding(false)} onMade={refresh} />}
      {revoking && (
        <Confirm
          title={words.revokeTitle(revoking.name)}
          text={words.revokeText}
          action={words.revoke}
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

function KeyRow({ of: one, onHold, onRevoke }: { of: Credential; onHold: () => void; onRevoke: () => void }) {
  const { mayChange, tenantId, nameOf } = useHere()
  return (
    <tr>
      <td className="font-medium">
        {one.name} {one.hold && <Badge tone="wait">{words.onHold}</Badge>}
      </td>
      {tenantId === undefined && <td className="min-w-28">{nameOf(one.tenantId)}</td>}
      <td className="font-mono text-xs">{one.keyPrefix}…</td>
      <td>
        <Badge tone={one.mode === 'live' ? 'good' : 'none'}>{one.type === 'smtp' ? 'smtp' : one.mode}</Badge>
      </td>
      <td className="min-w-40">{one.permissions?.join(', ') ?? words.everything}</td>
      <td>{one.lastUsedAt ? <Time at={one.lastUsedAt} /> : words.never}</td>
      <td>
        {mayChange && (
          <span className="flex justify-end gap-2">
            <Button onClick={onHold}>{one.hold ? words.release : words.hold}</Button>
            <Button kind="danger" aria-label={words.revokeOf(one.name)} onClick={onRevoke}>
              {words.revoke}
            </Button>
          </span>
        )}
      </td>
    </tr>
  )
}

const kinds = [
  { value: 'test', label: words.kinds.test },
  { value: 'live', label: words.kinds.live },
  { value: 'smtp', label: words.kinds.smtp },
] as const

function CreateKey({ onClose, onMade }: { onClose: () => void; onMade: () => Promise<void> }) {
  const { inBody } = useHere()
  const [name, setName] = useState('')
  const [kind, setKind] = useState<string>('test')
  const [allowed, setAllowed] = useState<string[]>([])
  const [made, setMade] = useState<Credential>()
  if (made) {
    return (
      <Once title={words.made(made.name)} text={words.once} secret={made.key ?? ''} copy={words.copy} onClose={onClose}>
        {made.smtpUsername && <p className="mt-2 text-sm">{words.userName(made.smtpUsername)}</p>}
      </Once>
    )
  }
  return (
    <FormDialog
      title={words.addTitle}
      action={words.addAction}
      run={() =>
        post<Credential>('/v1/credentials', {
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
        label={words.name}
        required
        pattern="[a-zA-Z0-9_\-]{1,50}"
        help={words.nameHelp}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Select label={words.kind} value={kind} onChange={setKind} choices={kinds} />
      <Several legend={words.may} choices={permissions} chosen={allowed} onChange={setAllowed} />
    </FormDialog>
  )
}
