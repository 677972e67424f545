/** The audit log, for owners. */
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import type { ShownAuditEntry } from '../api-types.ts'
import { Badge, Button, Heading } from '../parts/basic-components.tsx'
import type { Column } from '../parts/data-table.tsx'
import { SaveList } from '../parts/file-transfer.tsx'
import { Field } from '../parts/form-controls.tsx'
import { Listing, RowLink, useList } from '../parts/paged-lists.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.audit

export function AuditPage() {
  const { scoped, tenants } = useHere()
  const [filters, change] = useFilters()
  const [actor, setActor] = useState(filters.actor ?? '')
  const [action, setAction] = useState(filters.action ?? '')
  const path = scoped('/dashboard/api/audit', { actor: filters.actor, action: filters.action, page: filters.page })
  const list = useList<ShownAuditEntry>('audit', path)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change({ actor: actor.trim(), action: action.trim() })
  }
  const tenantName = (id: string | null) => (id === null ? '' : (tenants.find((one) => one.id === id)?.name ?? id))
  const columns: readonly Column<ShownAuditEntry>[] = [
    {
      name: words.names.action,
      phone: 'title',
      className: 'font-mono text-xs md:whitespace-nowrap',
      cell: (one) =>
        one.requestId !== null && one.actor.kind === 'key' ? <RowLink to={`/logs/${one.requestId}`}>{one.action}</RowLink> : one.action,
    },
    {
      name: words.names.actor,
      phone: 'line',
      className: 'max-w-64 [overflow-wrap:anywhere]',
      cell: (one) => (
        <>
          <Badge tone="none">{words.kinds[one.actor.kind]}</Badge> {one.actor.name}
        </>
      ),
    },
    { name: words.names.target, phone: 'line', className: 'min-w-56', cell: (one) => <Target of={one.data} /> },
    { name: words.names.tenant, phone: 'none', cell: (one) => tenantName(one.tenantId) },
    { name: words.names.ipAddress, phone: 'none', className: 'font-mono text-xs', cell: (one) => one.ipAddress },
    { name: words.names.time, phone: 'side', className: 'text-soft', cell: (one) => <Time at={one.at} /> },
  ]
  return (
    <>
      <Heading title={texts.pages.audit} about={words.about}>
        <SaveAudit filters={filters} />
      </Heading>
      <search className="mb-4 block">
        <form onSubmit={submit} className="grid items-end gap-2 md:grid-cols-[1fr_1fr_auto]">
          <Field label={words.who} value={actor} onChange={(event) => setActor(event.target.value)} />
          <Field label={words.action} value={action} onChange={(event) => setAction(event.target.value)} />
          <Button type="submit">{texts.actions.search}</Button>
        </form>
      </search>
      <Listing label={texts.pages.audit} list={list} columns={columns} keyOf={(one) => String(one.id)} empty={words.empty} />
    </>
  )
}

/** Saves the entries that match the filters as CSV. */
function SaveAudit({ filters }: { filters: Record<string, string | undefined> }) {
  const { scoped } = useHere()
  return (
    <SaveList<ShownAuditEntry>
      name="audit-log.csv"
      columns={['time', 'action', 'actor_kind', 'actor', 'target', 'tenant_id', 'ip_address', 'request_id']}
      pathOf={(page) => scoped('/dashboard/api/audit', { actor: filters.actor, action: filters.action, ...page })}
      idOf={(one) => String(one.id)}
      row={(one) => [
        one.at,
        one.action,
        one.actor.kind,
        one.actor.name,
        about(one.data),
        one.tenantId ?? '',
        one.ipAddress ?? '',
        one.requestId ?? '',
      ]}
    />
  )
}

/** Empty values are left out. */
const factsOf = (data: Record<string, unknown>): [name: string, value: string][] =>
  Object.entries(data)
    .filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0))
    .map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : typeof value === 'object' ? JSON.stringify(value) : String(value),
    ])

const about = (data: Record<string, unknown>) =>
  factsOf(data)
    .map(([name, value]) => `${name}: ${value}`)
    .join(' · ')

/** `emailId` is written as `email id`. */
const inWords = (name: string) =>
  words.dataNames[name as keyof typeof words.dataNames] ?? name.replace(/[A-Z]/g, (one) => ` ${one.toLowerCase()}`)

/** The object of the change, a fact on a line. An email's id leads to the email. */
const Target = ({ of: data }: { of: Record<string, unknown> }) => (
  <dl className="grid grid-cols-[max-content_minmax(0,1fr)] gap-x-3 gap-y-0.5 text-xs">
    {factsOf(data).map(([name, value]) => (
      <div key={name} className="contents">
        <dt className="text-soft">{inWords(name)}</dt>
        <dd className="[overflow-wrap:anywhere]">
          {name === 'emailId' ? (
            <Link to="/emails/$emailId" params={{ emailId: value }} search={{}} className="link font-mono">
              {value}
            </Link>
          ) : (
            value
          )}
        </dd>
      </div>
    ))}
  </dl>
)
