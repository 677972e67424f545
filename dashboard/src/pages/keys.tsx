/** API keys and SMTP logins: created (shown once), bound, held, revoked. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Page, patch, post, remove } from '../api-client.ts'
import { type Credential, permissions } from '../api-types.ts'
import { Confirm, FormDialog, Once, Several } from '../parts/action-dialogs.tsx'
import { Badge, Button, Heading } from '../parts/basic-components.tsx'
import type { Column } from '../parts/data-table.tsx'
import { Field, Select } from '../parts/form-controls.tsx'
import { Bounds, BoundsFields, boundsOf, ChangeBounds, isBound, noBounds } from '../parts/key-bounds.tsx'
import { Menu } from '../parts/menu.tsx'
import { Listing, useList } from '../parts/paged-lists.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.keys

/** Long because the list, its filter and its dialogs share their state. */
export function KeysPage() {
  const { ofKeys, mayChange, tenantId, ofAll, nameOf } = useHere()
  const [adding, setAdding] = useState(false)
  const [revoking, setRevoking] = useState<Credential>()
  const [binding, setBinding] = useState<Credential>()
  const client = useQueryClient()
  const [filters, change] = useFilters()
  const list = useList<Credential>('keys', ofKeys('', { page: filters.page, perPage: 100, keyEnd: 'true', ...ofAll }))
  const isWhole = list.data !== undefined && list.data.totalPages <= 1
  const shown = isWhole ? withType(byTenant(list.data, nameOf), filters.type) : list.data
  const refresh = () => client.invalidateQueries({ queryKey: ['keys'] })
  const hold = useMutation({
    mutationFn: (one: Credential) => patch(ofKeys(`/${one.id}`), { hold: !one.hold }),
    onSuccess: refresh,
  })
  return (
    <>
      <Heading title={texts.pages.keys} about={tenantId === undefined ? words.ofAll : words.ofTenant}>
        {isWhole && (
          <Select
            bare
            label={words.columnNames.type}
            value={filters.type ?? ''}
            choices={typeChoicesOf(list.data?.items ?? [])}
            onChange={(type) => change({ type })}
          />
        )}
        {mayChange && (
          <Button kind="main" onClick={() => setAdding(true)}>
            {words.add}
          </Button>
        )}
      </Heading>
      <Listing
        label={texts.pages.keys}
        list={{ error: list.error, data: shown }}
        error={hold.error}
        columns={useKeyColumns(list.data?.items ?? [], (one) => hold.mutate(one), setBinding, setRevoking)}
        keyOf={(one) => String(one.id)}
        empty={filters.type ? words.noneOfType : words.empty}
      />
      {adding && <CreateKey onClose={() => setAdding(false)} onMade={refresh} />}
      {binding && (
        <ChangeBounds
          of={binding}
          path={ofKeys(`/${binding.id}`)}
          onDone={async () => {
            setBinding(undefined)
            await refresh()
          }}
          onClose={() => setBinding(undefined)}
        />
      )}
      {revoking && (
        <Confirm
          title={words.revokeTitle(revoking.name)}
          text={words.revokeText}
          action={words.revoke}
          run={() => remove(ofKeys(`/${revoking.id}`))}
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

/** The keys of the organisation first, then those of each tenant. */
const byTenant = (list: Page<Credential>, nameOf: (id: string | null) => string): Page<Credential> => ({
  ...list,
  items: list.items.toSorted(
    (a, b) => Number(a.tenantId !== null) - Number(b.tenantId !== null) || nameOf(a.tenantId).localeCompare(nameOf(b.tenantId)),
  ),
})

const typeOf = ({ type, mode }: Credential) => (type === 'smtp' ? 'smtp' : mode)

function withType(list: Page<Credential>, type: string | undefined): Page<Credential> {
  const items = list.items.filter((one) => type === undefined || typeOf(one) === type)
  return { ...list, items, total: items.length }
}

/** With the number of each. */
const typeChoicesOf = (keys: readonly Credential[]) => [
  { value: '', label: words.all },
  ...(['live', 'test', 'smtp'] as const).map((value) => ({
    value,
    label: words.countOf(words.types[value], keys.filter((one) => typeOf(one) === value).length),
  })),
]

type OfKey = (one: Credential) => void

const boundsColumn: Column<Credential> = {
  name: words.columnNames.bounds,
  className: 'md:max-w-64',
  isUsual: (one) => !isBound(one),
  cell: (one) => <Bounds {...one} />,
}

/** The column of bounds is left out if no key has any. Long because each column is an element of one list. */
function useKeyColumns(items: readonly Credential[], onHold: OfKey, onBind: OfKey, onRevoke: OfKey): readonly Column<Credential>[] {
  const { mayChange, tenantId, nameOf } = useHere()
  const names = words.columnNames
  return [
    {
      name: names.name,
      phone: 'title',
      by: (one) => one.name,
      cell: (one) => (
        <>
          <span className="font-medium">{one.name}</span> {one.hold && <Badge tone="wait">{words.onHold}</Badge>}
        </>
      ),
    },
    {
      name: names.key,
      phone: 'line',
      className: 'font-mono text-xs whitespace-nowrap text-soft max-md:leading-5',
      cell: (one) => `${one.keyPrefix}…${one.keyEnd ?? ''}`,
    },
    {
      name: names.type,
      phone: 'side',
      by: (one) => `${one.type} ${one.mode}`,
      cell: (one) => (typeOf(one) === 'live' ? words.types.live : <Badge tone="none">{words.types[typeOf(one)]}</Badge>),
    },
    ...(tenantId === undefined
      ? [
          {
            name: names.tenant,
            phone: 'line' as const,
            by: (one: Credential) => nameOf(one.tenantId),
            cell: (one: Credential) => nameOf(one.tenantId),
          },
        ]
      : []),
    {
      name: names.permissions,
      phone: 'line',
      className: 'md:max-w-56',
      cell: (one) => (
        <span
          className={one.permissions ? 'text-soft' : 'font-medium'}
          {...(one.permissions ? { 'data-tip': one.permissions.join(', ') } : {})}
        >
          {one.permissions?.map((name) => words.permissionNames[name]).join(', ') ?? words.everything}
        </span>
      ),
    },
    ...(items.some(isBound) ? [boundsColumn] : []),
    {
      name: names.lastUsed,
      phone: 'line',
      by: (one) => one.lastUsedAt ?? '',
      className: 'whitespace-nowrap',
      cell: (one) => <LastUse of={one} />,
    },
    {
      name: names.created,
      phone: 'none',
      by: (one) => one.createdAt,
      className: 'text-soft whitespace-nowrap',
      cell: (one) => <Time at={one.createdAt} />,
    },
    {
      name: texts.table.actions,
      isUnnamed: true,
      phone: 'menu',
      className: 'md:text-right',
      cell: (one) =>
        mayChange && (
          <Menu
            label={words.actionsOf(one.name)}
            actions={[
              { label: words.bounds.change, onChoose: () => onBind(one) },
              { label: one.hold ? words.release : words.hold, onChoose: () => onHold(one) },
              { label: words.revoke, isDanger: true, onChoose: () => onRevoke(one) },
            ]}
          />
        ),
    },
  ]
}

/** A key that lies unused for longer than a week may be one too many. */
const LastUse = ({ of: { lastUsedAt, createdAt } }: { of: Credential }) =>
  lastUsedAt ? (
    <>
      <span className="text-soft md:hidden">{words.used} </span>
      <Time at={lastUsedAt} />
    </>
  ) : (
    <span className={Date.now() - Date.parse(createdAt) > unusedMs ? 'text-wait' : 'text-soft'}>{words.never}</span>
  )
const unusedMs = 7 * 86_400_000

const kinds = [
  { value: 'test', label: words.kinds.test },
  { value: 'live', label: words.kinds.live },
  { value: 'smtp', label: words.kinds.smtp },
] as const

function CreateKey({ onClose, onMade }: { onClose: () => void; onMade: () => Promise<void> }) {
  const { member, ofKeys, inBody } = useHere()
  const [name, setName] = useState('')
  const [kind, setKind] = useState<string>('test')
  const [allowed, setAllowed] = useState<string[]>([])
  const [bounds, setBounds] = useState(noBounds)
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
        post<Credential>(ofKeys(), {
          name,
          ...(kind === 'smtp' ? { type: 'smtp' } : { type: 'api', mode: kind }),
          ...(allowed.length === 0 ? {} : { permissions: allowed }),
          ...Object.fromEntries(Object.entries(boundsOf(bounds)).filter(([, one]) => one !== null)),
          ...(member.tenantId === null ? inBody : {}),
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
      <details>
        <summary className="cursor-pointer text-sm">{words.bounds.summary}</summary>
        <div className="mt-3 flex flex-col gap-4">
          <BoundsFields draft={bounds} onChange={setBounds} />
        </div>
      </details>
    </FormDialog>
  )
}
