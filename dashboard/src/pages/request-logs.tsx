/** API requests and responses. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, type InputHTMLAttributes, type ReactNode, useState } from 'react'
import { get } from '../api-client.ts'
import type { Credential, LoggedRequest, LogsRetrieveData } from '../api-types.ts'
import { ActiveFilters } from '../parts/active-filters.tsx'
import { Badge, Button, Heading, Section } from '../parts/basic-components.tsx'
import { ChooseKey, useKeys } from '../parts/choose-key.tsx'
import type { Column } from '../parts/data-table.tsx'
import { Field, Select } from '../parts/form-controls.tsx'
import { HiddenContent } from '../parts/hidden-content.tsx'
import { BackTo, Listing, RowLink, useList, Waiting } from '../parts/paged-lists.tsx'
import { Copy, CopyIconButton, Pre, Time, Value } from '../parts/time-and-copy.tsx'
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

const Answered = ({ code }: { code: number }) => <Badge tone={code < 400 ? 'good' : code < 500 ? 'wait' : 'bad'}>{code}</Badge>

const noBreak = '\u00a0'

/** `nameOf`: the name of a key by its id, if it is known. */
const columnsOf = (nameOf: (id: string) => string | undefined): readonly Column<LoggedRequest>[] => [
  {
    name: words.names.request,
    phone: 'title',
    className: 'max-w-[34rem]',
    cell: (one) => (
      <RowLink to={`/logs/${one.requestId}`}>
        <span className="inline-block font-mono text-xs font-normal text-soft md:w-14">{one.method}</span>
        {noBreak}
        {one.path}
      </RowLink>
    ),
  },
  { name: words.names.response, phone: 'side', by: (one) => one.statusCode, cell: (one) => <Answered code={one.statusCode} /> },
  {
    name: words.names.error,
    phone: 'line',
    className: 'font-mono text-xs text-bad',
    cell: (one) => one.error?.code,
  },
  {
    name: words.names.key,
    phone: 'line',
    className: 'md:max-w-40 truncate text-xs',
    cell: (one) => nameOf(one.credential.id) ?? one.credential.keyPrefix,
  },
  { name: words.names.duration, phone: 'line', isNumber: true, by: (one) => one.durationMs, cell: (one) => texts.ms(one.durationMs) },
  {
    name: words.names.time,
    phone: 'line',
    className: 'text-soft',
    by: (one) => one.timestamp,
    cell: (one) => <Time at={one.timestamp} clock="seconds" />,
  },
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

const moreId = 'more-log-filters'

/** Finds requests by id, endpoint, status code, key and time. */
function FilterForm({ filters, change, keys }: { filters: Filters; change: Change; keys: readonly Credential[] }) {
  const [given, setGiven] = useState<Filters>(pick(filters, [...typed, ...dates]))
  const [isOpen, setOpen] = useState(filterNames.some((name) => name !== 'requestId' && filters[name]))
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
        className="grid grid-cols-[minmax(0,1fr)_auto] items-end gap-3 md:grid-cols-3 xl:grid-cols-[1.5fr_1.3fr_1fr_0.8fr_1.2fr_1fr_auto]"
      >
        {field('requestId', { placeholder: words.examples.requestId })}
        <div
          id={moreId}
          className={`${isOpen ? 'grid' : 'hidden'} order-last col-span-full grid-cols-2 items-end gap-3 md:order-none md:contents`}
        >
          {field('endpoint', { placeholder: words.examples.endpoint })}
          <Select label={words.filters.status} value={filters.status ?? ''} choices={outcomes} onChange={(status) => change({ status })} />
          {field('statusCode', { pattern: '[1-5][0-9][0-9]', inputMode: 'numeric' })}
          <ChooseKey value={filters.credentialId ?? ''} keys={keys} onChange={(credentialId) => change({ credentialId })} />
          <ChooseRange label={words.filters.within} filters={filters} onChange={change} />
          {isCustom(filters) && dates.map((name) => field(name, { type: 'datetime-local' }))}
        </div>
        <Button type="submit">{texts.actions.search}</Button>
        <Button
          kind="quiet"
          className="col-span-full justify-self-start md:hidden"
          aria-expanded={isOpen}
          aria-controls={moreId}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? texts.emails.fewer : texts.emails.more}
        </Button>
      </form>
    </search>
  )
}

const valueInWords = (name: string, value: string) => (name === 'status' ? outcomes.find((one) => one.value === value)?.label : undefined)

/** Of the API, whose paths and JSON bodies the log keeps whole; the key is a variable. */
const curlFor = ({ method, path, request }: LogsRetrieveData) => {
  const body = request?.body
  if (!path.startsWith('/v1/') || typeof body === 'string') return undefined
  const json = body == null ? '' : ` -H 'Content-Type: application/json' -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`
  return `curl -X ${method} '${location.origin}${path}' -H "Authorization: Bearer $POSTRIDER_KEY"${json}`
}

const written = (body: object | string) => (typeof body === 'string' ? body : JSON.stringify(body, null, 2))

/** A body with a copy button; absent for requests without a body. */
const Body = ({ title, label, body }: { title: string; label: string; body: object | string | null | undefined }) => (
  <Section title={title} aside={body != null && <CopyIconButton text={written(body)} label={texts.actions.copyOf(label)} />}>
    {body == null ? <p className="text-sm text-soft">{words.noBody}</p> : <Pre label={label}>{written(body)}</Pre>}
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
  const curl = curlFor(entry)
  return (
    <>
      <BackTo to="/logs">{texts.pages.logs}</BackTo>
      <Heading title={`${entry.method} ${entry.path}`} beside={<Answered code={entry.statusCode} />}>
        {curl && <Copy text={curl} label={texts.email.curl} />}
      </Heading>
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
