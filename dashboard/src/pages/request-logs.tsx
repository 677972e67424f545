/** API requests and responses. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { get } from '../api-client.ts'
import type { LoggedRequest, LogsRetrieveData } from '../api-types.ts'
import { Badge, Heading, Pre, Section, Select, Time } from '../parts/basic-components.tsx'
import { BackTo, Listing, useList, Waiting } from '../parts/paged-lists.tsx'
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

export function LogsPage() {
  const { scoped } = useHere()
  const [filters, change] = useFilters()
  const list = useList<LoggedRequest>('logs', scoped('/v1/logs', { status: filters.status, page: filters.page }), 5000)
  return (
    <>
      <Heading title={texts.pages.logs}>
        <Select label={words.answer} value={filters.status ?? ''} choices={outcomes} onChange={(status) => change({ status })} />
      </Heading>
      <Listing
        label={texts.pages.logs}
        list={list}
        columns={words.columns}
        empty={words.empty}
        row={(one) => (
          <tr key={one.requestId}>
            <td>
              <Time at={one.timestamp} />
            </td>
            <td>
              <Answered code={one.statusCode} />
            </td>
            <td className="min-w-44 [overflow-wrap:anywhere]">
              <Link to="/logs/$requestId" params={{ requestId: one.requestId }} search={{}} className="text-accent underline">
                {one.method} {one.path}
              </Link>
              {one.error && <span className="block text-bad">{one.error.code}</span>}
            </td>
            <td className="font-mono text-xs">{one.credential.keyPrefix}</td>
            <td className="whitespace-nowrap">{texts.ms(one.durationMs)}</td>
          </tr>
        )}
      />
    </>
  )
}

const written = (body: object | string | null | undefined) => (typeof body === 'string' ? body : JSON.stringify(body ?? null, null, 2))

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
      <p className="text-sm text-soft [overflow-wrap:anywhere]">
        <Time at={entry.timestamp} /> · {texts.ms(entry.durationMs)} · {entry.credential.keyPrefix} · {entry.context.ipAddress} ·{' '}
        {entry.context.userAgent} · {entry.requestId}
      </p>
      {entry.error && (
        <p className="mt-3 text-bad">
          {entry.error.code}: {entry.error.message}
        </p>
      )}
      {entry.email && (
        <p className="mt-3">
          <Link to="/emails/$emailId" params={{ emailId: entry.email.id }} search={{}} className="text-accent underline">
            {words.email}
          </Link>
        </p>
      )}
      <Section title={words.request}>
        <Pre label={words.requestBody}>{written(entry.request?.body)}</Pre>
      </Section>
      <Section title={words.answer}>
        <Pre label={words.answerBody}>{written(entry.response?.body)}</Pre>
      </Section>
    </>
  )
}
