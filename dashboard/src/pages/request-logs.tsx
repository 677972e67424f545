/** API requests and responses. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, type InputHTMLAttributes, type ReactNode, useState } from 'react'
import { get } from '../api-client.ts'
import type { Credential, LoggedRequest, LogsRetrieveData } from '../api-types.ts'
import { ActiveFilters } from '../parts/active-filters.tsx'
import { Badge, Button, Empty, Heading, Section } from '../parts/basic-components.tsx'
import { ChooseKey, useKeys } from '../parts/choose-key.tsx'
import type { Column } from '../parts/data-table.tsx'
import { Field, Select } from '../parts/form-controls.tsx'
import { HiddenContent } from '../parts/hidden-content.tsx'
import { BackTo, Listing, RowLink, useList, Waiting } from '../parts/paged-lists.tsx'
import { CopyIconButton, Pre, Time, Value } from '../parts/time-and-copy.tsx'
import { ChooseRange, instantsOf, isCustom } from '../parts/time-range.tsx'
import { useFilters, useParam } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.logs
const everyMs = 5000
const outcomes = [
  { value: '', label: words.outcomes.any },
  { value: 'success', label: words.outcomes.success },
  { value: 'error', label: words.outcomes.error },
] as const

const Answered = ({ code }: { code: number }) => <Badge tone={code < 400 ? 'none' : 'bad'}>{code}</Badge>

/** `nameOf`: the name of a key by its id, if it is known. */
const columnsOf = (nameOf: (id: string) => string | undefined): readonly Column<LoggedRequest>[] => [
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
  {
    name: words.names.key,
    className: 'md:max-w-40 truncate text-xs',
    cell: (one) => nameOf(one.credential.id) ?? one.credential.keyPrefix,
  },
  { name: words.names.requestId, phone: 'none', cell: (one) => <Value name={words.names.requestId}>{one.requestId}</Value> },
  { name: words.names.duration, isNumber: true, by: (one) => one.durationMs, cell: (one) => texts.ms(one.durationMs) },
  { name: words.names.time, className: 'text-soft', by: (one) => one.timestamp, cell: (one) => <Time at={one.timestamp} /> },
]

const typed = ['requestId', 'endpoint', 'statusCode'] as const
const dates = ['after', 'before'] as const
const filterNames = [...typed, 'status', 'credentialId', 'within', ...dates] as const
type Filters = Record<string, string | undefined>
type Change = (changes: Filters) => void
const pick = (filters: Filters, names: readonly string[]) => Object.fromEntries(names.map((name) => [name, filters[name]]))

export function LogsPage() {
  const { scoped } = useHere()
  const [filters, change] = useFilters()
  const keys = useKeys(true)
  const { after, before } = instantsOf(filters)
  const wanted = pick(filters, [...typed, 'status', 'credentialId', 'page'])
  const list = useList<LoggedRequest>('logs', scoped('/v1/logs', { ...wanted, startDate: after, endDate: before }), everyMs)
  const nameOf = (id: string) => keys.find((one) => String(one.id) === id)?.name
  const isFiltered = filterNames.some((name) => filters[name])
  return (
    <>
      <Heading title={texts.pages.logs} about={words.about} />
      <FilterForm key={JSON.stringify(pick(filters, filterNames))} filters={filters} change={change} keys={keys} />
      <ActiveFilters labels={words.filters} names={filterNames} filters={filters} change={change} valueOf={valueInWords} />
      <Listing
        label={texts.pages.logs}
        list={list}
        columns={columnsOf(nameOf)}
        keyOf={(one) => one.requestId}
        empty={isFiltered ? words.emptyFiltered : words.empty}
      />
    </>
  )
}

/** Finds requests by id, endpoint, status code, key and time. */
function FilterForm({ filters, change, keys }: { filters: Filters; change: Change; keys: readonly Credential[] }) {
  const [given, setGiven] = useState<Filters>(pick(filters, [...typed, ...dates]))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const range = given.after || given.before ? { ...pick(given, dates), within: undefined } : {}
    change({ ...Object.fromEntries(typed.map((name) => [name, given[name]?.trim()])), ...range })
  }
  const field = (name: (typeof typed)[number] | (typeof dates)[number], rest: InputHTMLAttributes<HTMLInputElement> = {}) => (
    <Field
      key={name}
      label={words.filters[name]}
      value={given[name] ?? ''}
      onChange={({ target }) => setGiven({ ...given, [name]: target.value })}
      {...rest}
    />
  )
  return (
    <search className="mb-4 block">
      <form
        onSubmit={submit}
        className="grid grid-cols-2 items-end gap-3 md:grid-cols-3 xl:grid-cols-[1.5fr_1.3fr_1fr_0.8fr_1.2fr_1fr_auto]"
      >
        {field('requestId', { placeholder: words.examples.requestId })}
        {field('endpoint', { placeholder: words.examples.endpoint })}
        <Select label={words.filters.status} value={filters.status ?? ''} choices={outcomes} onChange={(status) => change({ status })} />
        {field('statusCode', { placeholder: words.examples.statusCode, pattern: '[1-5][0-9][0-9]', inputMode: 'numeric' })}
        <ChooseKey value={filters.credentialId ?? ''} keys={keys} onChange={(credentialId) => change({ credentialId })} />
        <ChooseRange label={words.filters.within} filters={filters} onChange={change} />
        {isCustom(filters) && dates.map((name) => field(name, { type: 'datetime-local' }))}
        <Button type="submit">{texts.actions.search}</Button>
      </form>
    </search>
  )
}

const valueInWords = (name: string, value: string) => (name === 'status' ? outcomes.find((one) => one.value === value)?.label : undefined)

const written = (body: object | string) => (typeof body === 'string' ? body : JSON.stringify(body, null, 2))

/** A body with a copy button; absent for requests without a body. */
const Body = ({ title, label, body }: { title: string; label: string; body: object | string | null | undefined }) => (
  <Section title={title} aside={body != null && <CopyIconButton text={written(body)} label={texts.actions.copyOf(label)} />}>
    {body == null ? <Empty>{words.noBody}</Empty> : <Pre label={label}>{written(body)}</Pre>}
  </Section>
)

export function LogPage() {
  const id = useParam('requestId')
  const keys = useKeys(true)
  const { data: entry, error } = useQuery({
    queryKey: ['log', id],
    queryFn: () => get<LogsRetrieveData>(`/v1/logs/${encodeURIComponent(id)}`),
  })
  if (!entry) return <Waiting error={error} />
  return (
    <>
      <BackTo to="/logs">{texts.pages.logs}</BackTo>
      <Heading title={`${entry.method} ${entry.path}`} beside={<Answered code={entry.statusCode} />} />
      {entry.error && (
        <div className="mb-4 rounded-lg bg-bad-back px-4 py-3 text-sm text-bad">
          <p className="font-semibold">{entry.error.code}</p>
          <p>{entry.error.message}</p>
        </div>
      )}
      <RequestFacts of={entry} keyName={keys.find((one) => String(one.id) === entry.credential.id)?.name} />
      {entry.contentHidden ? (
        <HiddenContent />
      ) : (
        <div className="grid gap-x-8 xl:grid-cols-2 [&>*]:min-w-0">
          <Body title={words.request} label={words.requestBody} body={entry.request?.body} />
          <Body title={words.answer} label={words.answerBody} body={entry.response?.body} />
        </div>
      )}
    </>
  )
}

/** The facts of the request beside its bodies. Absent ones are left out. */
function RequestFacts({ of: entry, keyName }: { of: LogsRetrieveData; keyName: string | undefined }) {
  const { names } = words
  const { ipAddress, userAgent } = entry.context
  const facts: [string, ReactNode][] = [
    [names.time, <Time key="time" at={entry.timestamp} exact />],
    [names.duration, texts.ms(entry.durationMs)],
    [names.key, [keyName, entry.credential.keyPrefix].filter((one) => one).join(' · ')],
    [names.endpoint, entry.endpoint],
    [names.ipAddress, ipAddress],
    [names.userAgent, userAgent],
    [
      words.email,
      entry.email && (
        <Link key="email" to="/emails/$emailId" params={{ emailId: entry.email.id }} search={{}} className="link font-mono text-xs">
          {entry.email.id}
        </Link>
      ),
    ],
    [
      names.requestId,
      <Value key="id" name={names.requestId}>
        {entry.requestId}
      </Value>,
    ],
  ]
  return (
    <dl className="grid grid-cols-2 gap-x-6 gap-y-3 rounded-lg border border-line px-4 py-3 text-sm md:grid-cols-4">
      {facts.map(([name, value]) =>
        value ? (
          <div key={name} className="min-w-0">
            <dt className="text-xs text-soft">{name}</dt>
            <dd className="[overflow-wrap:anywhere]">{value}</dd>
          </div>
        ) : null,
      )}
    </dl>
  )
}
