/** API requests and responses. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { get } from '../api-client.ts'
import type { LoggedRequest, LogsRetrieveData } from '../api-types.ts'
import { Badge, Button, Empty, Heading, Section } from '../parts/basic-components.tsx'
import type { Column } from '../parts/data-table.tsx'
import { Field, Select } from '../parts/form-controls.tsx'
import { BackTo, Listing, RowLink, useList, Waiting } from '../parts/paged-lists.tsx'
import { CopyIconButton, Pre, Time, Value } from '../parts/time-and-copy.tsx'
import { useFilters, useParam } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.logs
const outcomes = [
  { value: '', label: words.outcomes.any },
  { value: 'success', label: words.outcomes.success },
  { value: 'error', label: words.outcomes.error },
] as const

const Answered = ({ code }: { code: number }) => <Badge tone={code < 400 ? 'good' : 'bad'}>{code}</Badge>

const columns: readonly Column<LoggedRequest>[] = [
  {
    name: words.names.request,
    phone: 'title',
    className: 'max-w-96',
    cell: (one) => (
      <>
        <RowLink to={`/logs/${one.requestId}`}>
          {one.method} {one.path}
        </RowLink>
        {one.error && <span className="block text-xs text-bad">{one.error.code}</span>}
      </>
    ),
  },
  { name: words.names.response, phone: 'side', by: (one) => one.statusCode, cell: (one) => <Answered code={one.statusCode} /> },
  {
    name: words.names.endpoint,
    phone: 'none',
    className: 'font-mono text-xs text-soft',
    by: (one) => one.endpoint,
    cell: (one) => one.endpoint,
  },
  { name: words.names.key, phone: 'line', className: 'font-mono text-xs', cell: (one) => one.credential.keyPrefix },
  { name: words.names.requestId, phone: 'none', cell: (one) => <Value name={words.names.requestId}>{one.requestId}</Value> },
  { name: words.names.duration, phone: 'line', isNumber: true, by: (one) => one.durationMs, cell: (one) => texts.ms(one.durationMs) },
  { name: words.names.time, phone: 'line', className: 'text-soft', by: (one) => one.timestamp, cell: (one) => <Time at={one.timestamp} /> },
]

const typed = ['requestId', 'endpoint', 'statusCode'] as const

export function LogsPage() {
  const { scoped } = useHere()
  const [filters, change] = useFilters()
  const { status, page, ...wanted } = filters
  const list = useList<LoggedRequest>('logs', scoped('/v1/logs', { status, page, ...pick(wanted) }), 5000)
  return (
    <>
      <Heading title={texts.pages.logs} about={words.about}>
        <Select label={words.answer} value={status ?? ''} choices={outcomes} onChange={(next) => change({ status: next })} />
      </Heading>
      <FilterForm key={JSON.stringify(pick(wanted))} filters={filters} change={change} />
      <Listing label={texts.pages.logs} list={list} columns={columns} keyOf={(one) => one.requestId} empty={words.empty} />
    </>
  )
}

type Filters = Record<string, string | undefined>
const pick = (filters: Filters) => Object.fromEntries(typed.map((name) => [name, filters[name]]))

/** Finds a request by its id, endpoint or status code. */
function FilterForm({ filters, change }: { filters: Filters; change: (changes: Filters) => void }) {
  const [given, setGiven] = useState<Filters>(pick(filters))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change(Object.fromEntries(typed.map((name) => [name, given[name]?.trim()])))
  }
  return (
    <search className="mb-4 block">
      <form onSubmit={submit} className="grid grid-cols-2 items-end gap-2 md:grid-cols-[2fr_2fr_1fr_auto]">
        {typed.map((name) => (
          <Field
            key={name}
            label={words.filters[name]}
            placeholder={words.examples[name]}
            {...(name === 'statusCode' ? { pattern: '[1-5][0-9][0-9]', inputMode: 'numeric' as const } : {})}
            value={given[name] ?? ''}
            onChange={({ target }) => setGiven({ ...given, [name]: target.value })}
          />
        ))}
        <Button type="submit">{texts.actions.search}</Button>
      </form>
    </search>
  )
}

const written = (body: object | string) => (typeof body === 'string' ? body : JSON.stringify(body, null, 2))

/** A body with a copy button; requests without a body have none. */
const Body = ({ title, label, body }: { title: string; label: string; body: object | string | null | undefined }) => (
  <Section title={title} aside={body != null && <CopyIconButton text={written(body)} label={texts.actions.copyOf(label)} />}>
    {body == null ? <Empty>{words.noBody}</Empty> : <Pre label={label}>{written(body)}</Pre>}
  </Section>
)

export function LogPage() {
  const id = useParam('requestId')
  const { data: entry, error } = useQuery({
    queryKey: ['log', id],
    queryFn: () => get<LogsRetrieveData>(`/v1/logs/${encodeURIComponent(id)}`),
  })
  if (!entry) return <Waiting error={error} />
  return (
    <>
      <BackTo to="/logs">{texts.pages.logs}</BackTo>
      <Heading title={`${entry.method} ${entry.path}`}>
        <Answered code={entry.statusCode} />
      </Heading>
      <p className="flex flex-wrap items-center gap-x-2 text-sm text-soft [overflow-wrap:anywhere]">
        <Value name={words.names.requestId}>{entry.requestId}</Value> · <Time at={entry.timestamp} exact /> · {texts.ms(entry.durationMs)}
        {[entry.credential.keyPrefix, entry.context.ipAddress, entry.context.userAgent]
          .filter((one) => one)
          .map((one) => (
            <span key={one}>· {one}</span>
          ))}
      </p>
      {entry.error && (
        <p className="mt-3 text-bad">
          {entry.error.code}: {entry.error.message}
        </p>
      )}
      {entry.email && (
        <p className="mt-3">
          <Link to="/emails/$emailId" params={{ emailId: entry.email.id }} search={{}} className="link">
            {words.email}
          </Link>
        </p>
      )}
      <Body title={words.request} label={words.requestBody} body={entry.request?.body} />
      <Body title={words.answer} label={words.answerBody} body={entry.response?.body} />
    </>
  )
}
