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
      className: 'md:whitespace-nowrap',
      cell: (one) => <Action of={one} />,
    },
    {
      name: words.names.actor,
      phone: 'line',
      className: 'md:max-w-64 [overflow-wrap:anywhere]',
      cell: (one) => (
        <>
          <Badge tone="none">{words.kinds[one.actor.kind]}</Badge> {one.actor.name}
        </>
      ),
    },
    { name: words.names.target, phone: 'line', className: 'min-w-56', cell: (one) => <Target of={one} /> },
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

/** A sentence such as "Created a key". An action without one, such as `queue.flush`, is written as "Queue: flush". */
function actionInWords(code: string): string {
  const [object = '', verb = '', more] = code.split('.')
  const sentences: Record<string, string> = words.sentences
  const verbs: Record<string, string> = words.verbs
  const objects: Record<string, string> = words.objects
  const isKnown = more === undefined && Object.hasOwn(verbs, verb) && Object.hasOwn(objects, object)
  if (Object.hasOwn(sentences, code)) return sentences[code] ?? code
  return isKnown ? `${verbs[verb]} ${objects[object]}` : codeInWords(code)
}

function codeInWords(code: string): string {
  const [area = '', ...rest] = code.split('.').map((part) => spaced(part).replaceAll(/[-_]/g, ' '))
  return [area.charAt(0).toUpperCase() + area.slice(1), rest.join(' ')].filter((one) => one !== '').join(': ')
}

/** In words, with the code as a note. The entry of a key leads to its request. */
function Action({ of: { action, requestId, actor } }: { of: ShownAuditEntry }) {
  const said = actionInWords(action)
  return (
    <>
      {requestId !== null && actor.kind === 'key' ? (
        <RowLink to={`/logs/${requestId}`}>{said}</RowLink>
      ) : (
        <span className="font-medium">{said}</span>
      )}
      <span className="block font-mono text-xs text-soft">{action}</span>
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
    .map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : typeof value === 'string' ? value : JSON.stringify(value)])

const about = (data: Record<string, unknown>) =>
  factsOf(data)
    .map(([name, value]) => `${name}: ${value}`)
    .join(' · ')

const spaced = (name: string) => name.replace(/[A-Z]/g, (one) => ` ${one.toLowerCase()}`)

/** `emailId` is written as `email id`. */
const inWords = (name: string) => words.dataNames[name as keyof typeof words.dataNames] ?? spaced(name)

/**
 * The name of the object, then the other facts. The same value is shown once. An email's id leads to the email. The fields of a new object are
 * left out.
 */
function Target({ of: { action, data } }: { of: ShownAuditEntry }) {
  const isNew = /\.(?:create|add)$/.test(action)
  const facts = factsOf(data).filter(([name]) => !(isNew && name === 'fields'))
  const title = titles.flatMap((name) => facts.find(([key]) => key === name)?.[1] ?? [])[0]
  const others = facts.filter(([, value], index) => value !== title && facts.findIndex(([, other]) => other === value) === index)
  return (
    <>
      {title && <p className="[overflow-wrap:anywhere]">{title}</p>}
      <dl className="flex flex-wrap gap-x-3 text-xs">
        {others.map(([name, value]) => (
          <div key={name} className="flex min-w-0 gap-1.5">
            <dt className="shrink-0 text-soft">{inWords(name)}</dt>
            <dd className="min-w-0 [overflow-wrap:anywhere]">
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
    </>
  )
}

/** Facts that name the object, the best first. */
const titles = ['name', 'address', 'transportName', 'destination']
