/** All emails, newest first, with filters; new ones appear by themselves. */
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { getPage } from '../api.ts'
import { Button, Empty, Field, Heading, Pager, Problem, Select, StatusBadge, Time } from '../parts/basics.tsx'
import { useFilters } from '../parts/params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { type Email, statuses } from '../types.ts'

const everyMs = 3000
const filterNames = ['to', 'from', 'tag', 'status', 'after', 'before'] as const

export function EmailsPage() {
  const { scoped } = useHere()
  const [filters, change] = useFilters()
  const wanted = Object.fromEntries(filterNames.map((name) => [name, filters[name]]))
  const path = scoped('/v1/emails', { ...wanted, page: filters.page, perPage: 30 })
  const { data, error, isPending } = useQuery({
    queryKey: ['emails', path],
    queryFn: () => getPage<Email>(path),
    refetchInterval: everyMs,
    placeholderData: keepPreviousData,
  })
  const isFiltered = filterNames.some((name) => filters[name])
  return (
    <>
      <Heading title={texts.pages.emails} />
      <Filters key={JSON.stringify(wanted)} filters={filters} change={change} isFiltered={isFiltered} />
      <Problem error={error} />
      {isPending && !error && <p className="text-soft">Loading</p>}
      {data?.items.length === 0 && <Empty>{isFiltered ? texts.noEmailsMatch : texts.noEmails}</Empty>}
      {data && data.items.length > 0 && (
        <ul className="divide-y divide-line rounded-md border border-line">
          {data.items.map((email) => (
            <li key={email.id}>
              <Link
                to="/emails/$emailId"
                params={{ emailId: email.id }}
                search={{}}
                className="grid grid-cols-[1fr_auto] gap-x-3 gap-y-0.5 px-3 py-2.5 text-sm hover:bg-sheet md:grid-cols-[6rem_minmax(0,1fr)_minmax(0,1.4fr)_auto] md:items-center"
              >
                <span className="order-2 text-right md:order-none md:text-left">
                  <StatusBadge status={email.status} />
                </span>
                <span className="order-1 truncate font-medium md:order-none">{email.to}</span>
                <span className="order-3 col-span-2 truncate md:order-none md:col-span-1">
                  {email.subject || '(no subject)'} {email.tag && <span className="text-soft">#{email.tag}</span>}
                </span>
                <span className="order-4 col-span-2 text-soft md:order-none md:col-span-1">
                  <Time at={email.timestampIso} />
                </span>
              </Link>
            </li>
          ))}
        </ul>
      )}
      {data && <Pager {...data} onPage={(page) => change({ page: String(page) })} />}
    </>
  )
}

function Filters(props: {
  filters: Record<string, string | undefined>
  change: (next: Record<string, string | undefined>) => void
  isFiltered: boolean
}) {
  const { filters, change } = props
  const [to, setTo] = useState(filters.to ?? '')
  const [from, setFrom] = useState(filters.from ?? '')
  const [tag, setTag] = useState(filters.tag ?? '')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change({ to: to.trim(), from: from.trim(), tag: tag.trim() })
  }
  return (
    <search className="mb-4 block">
      <form onSubmit={submit} className="grid grid-cols-2 items-end gap-3 md:grid-cols-5">
        <Field label="Recipient" value={to} onChange={(event) => setTo(event.target.value)} placeholder="ann@example.org" />
        <Field label="Sender" value={from} onChange={(event) => setFrom(event.target.value)} placeholder="shop@example.com" />
        <Field label="Tag" value={tag} onChange={(event) => setTag(event.target.value)} />
        <Select
          label="Status"
          value={filters.status ?? ''}
          onChange={(status) => change({ status })}
          choices={[{ value: '', label: 'Any' }, ...statuses.map((value) => ({ value, label: texts.status[value] }))]}
        />
        <div className="col-span-2 flex gap-2 md:col-span-1">
          <Button kind="main" type="submit">
            Search
          </Button>
          {props.isFiltered && (
            <Button onClick={() => change(Object.fromEntries(filterNames.map((name) => [name, undefined])))}>Clear</Button>
          )}
        </div>
      </form>
    </search>
  )
}
