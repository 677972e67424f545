/** API requests and responses. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { FormEvent, ReactNode } from 'react'
import { get, type Page } from '../api-client.ts'
import type { Credential, LoggedRequest, LogsRetrieveData } from '../api-types.ts'
import { ActiveFilters } from '../parts/active-filters.tsx'
import { Badge, Button, Heading, linkAs, Section } from '../parts/basic-components.tsx'
import { ChooseKey, useKeys } from '../parts/choose-key.tsx'
import type { Column } from '../parts/data-table.tsx'
import { FactBox } from '../parts/fact-box.tsx'
import { Field, Select } from '../parts/form-controls.tsx'
import { HiddenContent } from '../parts/hidden-content.tsx'
import { JsonText } from '../parts/json-text.tsx'
import { BackTo, Listing, RowLink, useList, Waiting } from '../parts/paged-lists.tsx'
import { Copy, CopyIconButton, Time, Value } from '../parts/time-and-copy.tsx'
import { ChooseRange, instantsOf, isCustom } from '../parts/time-range.tsx'
import { useFilters, useParam, useTyped } from '../parts/url-params.ts'
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

/** In a list, only a failure has a colour. */
const ListedAnswer = ({ code }: { code: number }) =>
  code < 400 ? <span className="px-1.5 text-soft tabular-nums">{code}</span> : <Answered code={code} />

const noBreak = '\u00a0'

/** `nameOf`: the name of a key by its id, if it is known. */
const columnsOf = (nameOf: (id: string) => string | undefined): readonly Column<LoggedRequest>[] => [
  {
    name: words.names.response,
    phone: 'side',
    className: 'md:w-0',
    by: (one) => one.statusCode,
    cell: (one) => <ListedAnswer code={one.statusCode} />,
  },
  {
    name: words.names.request,
    phone: 'title',
    className: 'max-w-[40rem]',
    cell: (one) => (
      <>
        <RowLink to={`/logs/${one.requestId}`}>
          <span className="font-mono text-xs font-normal text-soft">{one.method}</span>
          {noBreak}
          {one.path}
        </RowLink>
        {one.error && <span className="font-mono text-xs text-bad max-md:block md:ml-3">{one.error.code}</span>}
      </>
    ),
  },
  {
    name: words.names.key,
    phone: 'line',
    className: 'md:max-w-40 truncate text-soft',
    cell: (one) => nameOf(one.credential.id) ?? one.credential.keyPrefix,
  },
  {
    name: words.names.duration,
    phone: 'line',
    isNumber: true,
    className: 'text-soft',
    by: (one) => one.durationMs,
    cell: (one) => texts.ms(one.durationMs),
  },
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
      <FilterForm filters={filters} change={change} keys={keys} />
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

/** One text is an id, an endpoint or a status code, which it looks like. */
function soughtBy(text: string): Filters {
  const nothing = { requestId: undefined, endpoint: undefined, statusCode: undefined }
  if (/^[1-5]\d\d$/.test(text)) return { ...nothing, statusCode: text }
  return /^[a-zA-Z-]+(?:\.[a-zA-Z-]+)+$/.test(text) ? { ...nothing, endpoint: text } : { ...nothing, requestId: text }
}

/** One field finds by id, endpoint or status code; the menus act at once. */
function FilterForm({ filters, change, keys }: { filters: Filters; change: Change; keys: readonly Credential[] }) {
  const [given, setGiven] = useTyped({
    sought: filters.statusCode ?? filters.endpoint ?? filters.requestId ?? '',
    after: filters.after ?? '',
    before: filters.before ?? '',
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const { sought, after, before } = given
    const range = after || before ? { after, before, within: undefined } : { after, before }
    change({ ...soughtBy(sought.trim()), ...(isCustom(filters) ? range : {}) })
  }
  return (
    <search className="mb-4 block">
      <form onSubmit={submit} className="grid grid-cols-3 items-end gap-3 xl:grid-cols-[minmax(0,1fr)_auto_9rem_12rem_9rem]">
        <div className="max-xl:col-span-full xl:contents">
          <div className="grid grid-cols-[minmax(0,1fr)_auto] items-end gap-3 xl:contents">
            <Field
              label={words.find}
              placeholder={words.example}
              value={given.sought}
              onChange={({ target }) => setGiven('sought', target.value)}
            />
            <Button type="submit">{texts.actions.search}</Button>
          </div>
        </div>
        <Select label={words.filters.status} value={filters.status ?? ''} choices={outcomes} onChange={(status) => change({ status })} />
        <ChooseKey value={filters.credentialId ?? ''} keys={keys} onChange={(credentialId) => change({ credentialId })} />
        <ChooseRange label={words.filters.within} filters={filters} onChange={change} />
        {isCustom(filters) &&
          dates.map((name) => (
            <Field
              key={name}
              label={words.filters[name]}
              type="datetime-local"
              value={given[name]}
              onChange={({ target }) => setGiven(name, target.value)}
            />
          ))}
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

/** A body, or the parameters of a query, with a copy button. */
const Body = ({ title, label, body }: { title: string; label: string; body: object | string | null | undefined }) => (
  <Section title={title} aside={body != null && <CopyIconButton text={written(body)} label={texts.actions.copyOf(label)} />}>
    {body == null ? <p className="text-sm text-soft">{words.noBody}</p> : <JsonText label={label}>{written(body)}</JsonText>}
  </Section>
)

const isFilled = (query: object | null) => query !== null && Object.keys(query).length > 0

/** The input: the body, and the query, which is all that most requests without a body have. Without either, the response has the whole width. */
function Bodies({ of: { request, response, context } }: { of: LogsRetrieveData }) {
  const query = isFilled(context.queryParams) ? context.queryParams : null
  const isOnly = query === null && request.body == null
  return (
    <div className={`grid gap-x-8 [&>*]:min-w-0 ${isOnly ? '' : 'xl:grid-cols-2'}`}>
      {!isOnly && (
        <div>
          {query && <Body title={words.query} label={words.query} body={query} />}
          {request.body != null && <Body title={words.request} label={words.requestBody} body={request.body} />}
        </div>
      )}
      <Body title={words.answer} label={words.answerBody} body={response.body} />
    </div>
  )
}

/** The requests before and after this one in the list from which the page was opened. */
function useNeighbours(id: string): { newer: string | undefined; older: string | undefined } {
  const lists = useQueryClient().getQueriesData<Page<LoggedRequest>>({ queryKey: ['logs'] })
  for (const [, list] of lists) {
    const index = list?.items.findIndex(({ requestId }) => requestId === id) ?? -1
    if (index >= 0) return { newer: list?.items[index - 1]?.requestId, older: list?.items[index + 1]?.requestId }
  }
  return { newer: undefined, older: undefined }
}

function Neighbours({ id }: { id: string }) {
  const { newer, older } = useNeighbours(id)
  const to = (requestId: string | undefined, name: string) =>
    requestId && (
      <Link to="/logs/$requestId" params={{ requestId }} search={{}} className={linkAs.plain}>
        {name}
      </Link>
    )
  return (
    <>
      {to(newer, texts.pager.newer)}
      {to(older, texts.pager.older)}
    </>
  )
}

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
        <Neighbours id={id} />
        {curl && <Copy text={curl} label={texts.email.curl} />}
      </Heading>
      {entry.error && (
        <div className="mb-4 rounded-lg bg-bad-back px-4 py-3 text-sm text-bad">
          <p className="font-semibold">{entry.error.code}</p>
          <p>{entry.error.message}</p>
        </div>
      )}
      <RequestFacts of={entry} keyName={keys.find((one) => String(one.id) === entry.credential.id)?.name} />
      {entry.contentHidden ? <HiddenContent /> : <Bodies of={entry} />}
    </>
  )
}

/** The facts of the request beside its bodies. Absent ones are left out. */
function RequestFacts({ of: entry, keyName }: { of: LogsRetrieveData; keyName: string | undefined }) {
  const { names } = words
  const { ipAddress, userAgent, idempotencyKey } = entry.context
  const facts: [string, ReactNode][] = [
    [names.time, <Time key="time" at={entry.timestamp} exact />],
    [names.duration, texts.ms(entry.durationMs)],
    [
      names.key,
      <Link key="key" to="/keys" search={{}} className="link">
        {[keyName, entry.credential.keyPrefix].filter((one) => one).join(' · ')}
      </Link>,
    ],
    [names.endpoint, entry.endpoint],
    [names.ipAddress, ipAddress],
    [names.userAgent, userAgent],
    [names.idempotencyKey, idempotencyKey],
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
  return <FactBox facts={facts} />
}
