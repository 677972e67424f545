/** All emails, newest first: search, filters, saved views, live updates. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { getPage } from '../api-client.ts'
import type { Credential, ListedEmail } from '../api-types.ts'
import { Button, Empty, Heading, Problem } from '../parts/basic-components.tsx'
import { ChooseMail } from '../parts/chart.tsx'
import { DataTable, Pager, TableSkeleton } from '../parts/data-table.tsx'
import { EmailActions } from '../parts/email-actions.tsx'
import { useEmailColumns } from '../parts/email-columns.tsx'
import { useNews } from '../parts/event-stream.ts'
import { SaveList } from '../parts/file-transfer.tsx'
import { Field, Select } from '../parts/form-controls.tsx'
import { useList } from '../parts/paged-lists.tsx'
import { mailOf, testOf, useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

/** For changes that are not in the event stream: emails that are accepted but not yet attempted. */
const everyMs = 5000
/** The most that the API counts in a search. */
const maxCounted = 1000
const words = texts.emails
const filterNames = [
  'to',
  'from',
  'subject',
  'status',
  'tag',
  'domain',
  'credentialId',
  'metadata',
  'after',
  'before',
  'complained',
] as const
const typed = ['to', 'from', 'subject', 'tag', 'domain', 'metadata', 'after', 'before'] as const
const rare = ['tag', 'domain', 'credentialId', 'metadata', 'after', 'before', 'complained'] as const
/** Filters that make a list a search, for which the API bounds the results. */
const searchNames = ['subject', 'domain', 'credentialId', 'metadata', 'complained'] as const
type Filters = Record<string, string | undefined>

export function EmailsPage() {
  const { scoped, tenantId } = useHere()
  const [filters, change] = useFilters()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const client = useQueryClient()
  const mail = mailOf(filters.mail)
  const wanted = Object.fromEntries(filterNames.map((name) => [name, filters[name]]))
  const pathOf = (page: { page: string | number | undefined; perPage: number; before?: string }) =>
    scoped('/v1/emails', { ...instants(wanted), ...page, test: testOf(mail) })
  const list = useList<ListedEmail>('emails', pathOf({ page: filters.page, perPage: 30 }), everyMs)
  const { data, error } = list
  const isFiltered = filterNames.some((name) => filters[name])
  const isSearch = searchNames.some((name) => filters[name]) || (Boolean(filters.status) && mail !== 'all')
  // A search may take longer than the time to the next event, so a running one is not restarted.
  useNews(tenantId, () => void (isFiltered || client.invalidateQueries({ queryKey: ['emails'] }, { cancelRefetch: false })))
  const columns = useEmailColumns(data?.items ?? [])
  const selection = { chosen, onChange: setChosen, nameOf: (id: string) => data?.items.find((one) => one.id === id)?.to ?? id }
  return (
    <>
      <Heading title={texts.pages.emails}>
        <ChooseMail mail={mail} onChange={(next) => change({ mail: next })} />
        <SaveList<ListedEmail>
          name="emails.csv"
          moves={(one) => one}
          columns={['id', 'accepted', 'status', 'to', 'from', 'subject', 'tag', 'tenant_id', 'test']}
          pathOf={pathOf}
          row={(one) => [
            one.id,
            one.timestampIso,
            one.status,
            one.to,
            one.from,
            one.subject,
            one.tag ?? '',
            one.tenantId,
            String(one.test),
          ]}
        />
      </Heading>
      <Presets filters={filters} change={change} />
      <FilterForm key={JSON.stringify(wanted)} filters={filters} change={change} isFiltered={isFiltered} />
      <Problem error={error} />
      {!data && !error && <TableSkeleton rows={12} />}
      {data?.items.length === 0 && <NoneListed mail={mail} isFiltered={isFiltered} onShow={() => change({ mail: 'test' })} />}
      {data && data.items.length > 0 && (
        <DataTable label={texts.pages.emails} columns={columns} items={data.items} keyOf={(one) => one.id} selection={selection} />
      )}
      {data && (
        <Pager
          {...data}
          isAtLeast={data.total === maxCounted && isSearch && !filters.to && !filters.from && !filters.tag}
          onPage={(page) => change({ page: String(page) })}
        />
      )}
      <EmailActions selection={selection} emails={data?.items ?? []} />
    </>
  )
}

/** Midnight in the reader's zone, as a value of a date field. */
function today(): string {
  const now = new Date()
  const digits = (value: number) => String(value).padStart(2, '0')
  return `${now.getFullYear()}-${digits(now.getMonth() + 1)}-${digits(now.getDate())}T00:00`
}

const presets = [
  { name: words.presets.all, set: {} },
  { name: words.presets.problems, set: { status: 'hardfail', after: 'today' } },
  { name: words.presets.bouncedToday, set: { status: 'bounced', after: 'today' } },
  { name: words.presets.waiting, set: { status: 'softfail' } },
  { name: words.presets.held, set: { status: 'held' } },
  { name: words.presets.bounced, set: { status: 'bounced' } },
] as const

/** Filters with one click. */
function Presets({ filters, change }: { filters: Filters; change: (next: Filters) => void }) {
  const cleared = Object.fromEntries(filterNames.map((name) => [name, undefined]))
  const isNow = (set: Filters) =>
    filterNames.every((name) => (filters[name] ?? '') === (set[name] === 'today' ? today() : (set[name] ?? '')))
  return (
    <fieldset className="mb-3 flex flex-wrap gap-1.5">
      <legend className="sr-only">{words.presets.label}</legend>
      {presets.map(({ name, set }) => {
        const next: Filters = set
        return (
          <Button
            key={name}
            small
            kind="quiet"
            aria-pressed={isNow(next)}
            className="aria-pressed:border-ink aria-pressed:text-ink"
            onClick={() => change({ ...cleared, ...next, ...(next.after ? { after: today() } : {}) })}
          >
            {name}
          </Button>
        )
      })}
    </fieldset>
  )
}

/** There may be no live mail because all of it is test mail. */
function NoneListed({ mail, isFiltered, onShow }: { mail: string; isFiltered: boolean; onShow: () => void }) {
  const { scoped } = useHere()
  const path = scoped('/v1/emails', { test: 'true', perPage: 1 })
  const test = useQuery({ queryKey: ['emails', path], queryFn: () => getPage<ListedEmail>(path), enabled: mail === 'live' })
  const count = mail === 'live' ? (test.data?.total ?? 0) : 0
  return (
    <Empty>
      {isFiltered ? texts.noEmailsMatch : count > 0 ? texts.mail.onlyTestListed(count) : texts.noEmails}
      {count > 0 && (
        <span className="mt-3 block">
          <Button onClick={onShow}>{texts.mail.showTest}</Button>
        </span>
      )}
    </Empty>
  )
}

/** A date field is in the reader's time zone; the API takes UTC. */
function instants(filters: Filters): Filters {
  const utc = (local: string | undefined) => {
    const at = local ? new Date(local) : undefined
    return at && !Number.isNaN(at.getTime()) ? at.toISOString() : local
  }
  return { ...filters, after: utc(filters.after), before: utc(filters.before) }
}

function FilterForm({ filters, change, isFiltered }: { filters: Filters; change: (next: Filters) => void; isFiltered: boolean }) {
  const [given, setGiven] = useState<Filters>(Object.fromEntries(typed.map((name) => [name, filters[name] ?? ''])))
  const [open, setOpen] = useState(rare.some((name) => filters[name]))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change(Object.fromEntries(typed.map((name) => [name, given[name]?.trim()])))
  }
  const field = (name: (typeof typed)[number], rest: { placeholder?: string; type?: string; pattern?: string } = {}) => (
    <Field
      label={words.filters[name]}
      value={given[name] ?? ''}
      onChange={({ target }) => setGiven({ ...given, [name]: target.value })}
      {...rest}
    />
  )
  return (
    <search className="mb-4 block">
      <form onSubmit={submit}>
        <div className="grid grid-cols-2 items-end gap-3 md:grid-cols-5">
          {field('to', { placeholder: words.examples.to })}
          {field('from', { placeholder: words.examples.from })}
          {field('subject')}
          <Select
            label={words.filters.status}
            value={filters.status ?? ''}
            onChange={(status) => change({ status })}
            choices={[{ value: '', label: words.any }, ...Object.entries(texts.status).map(([value, label]) => ({ value, label }))]}
          />
          <div className="col-span-2 flex flex-wrap gap-2 md:col-span-1">
            <Button type="submit">{texts.actions.search}</Button>
            {isFiltered && (
              <Button onClick={() => change(Object.fromEntries(filterNames.map((name) => [name, undefined])))}>{words.clear}</Button>
            )}
          </div>
        </div>
        <details className="mt-2" open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
          <summary className="w-fit text-xs text-accent">{words.more}</summary>
          <div className="mt-2 grid grid-cols-2 items-end gap-3 md:grid-cols-3">
            {field('tag')}
            {field('domain', { placeholder: words.examples.domain })}
            {field('metadata', { placeholder: words.examples.metadata, pattern: '.+:.*' })}
            {field('after', { type: 'datetime-local' })}
            {field('before', { type: 'datetime-local' })}
            <KeySelect value={filters.credentialId ?? ''} isOpen={open} onChange={(credentialId) => change({ credentialId })} />
            <ComplaintSelect value={filters.complained ?? ''} onChange={(complained) => change({ complained })} />
          </div>
        </details>
      </form>
    </search>
  )
}

const ComplaintSelect = (props: { value: string; onChange: (complained: string) => void }) => (
  <Select
    label={words.filters.complained}
    choices={[
      { value: '', label: words.any },
      { value: 'true', label: words.complained },
    ]}
    {...props}
  />
)

/** The sending key; the keys are loaded when the filter is shown. */
function KeySelect(props: { value: string; isOpen: boolean; onChange: (id: string) => void }) {
  const { scoped } = useHere()
  const keysPath = scoped('/v1/credentials', { perPage: 100 })
  const keys = useQuery({
    queryKey: ['keys', keysPath],
    queryFn: () => getPage<Credential>(keysPath),
    enabled: props.isOpen,
    staleTime: 60_000,
  })
  return (
    <Select
      label={words.filters.credentialId}
      value={props.value}
      onChange={props.onChange}
      choices={[
        { value: '', label: words.any },
        ...(keys.data?.items ?? []).map(({ id, name, keyPrefix }) => ({ value: String(id), label: `${name} (${keyPrefix}…)` })),
      ]}
    />
  )
}
