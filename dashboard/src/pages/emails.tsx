/** All emails, newest first: search, filters, saved views, live updates. */
import { useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { getPage } from '../api-client.ts'
import type { ListedEmail, Status } from '../api-types.ts'
import { ActiveFilters } from '../parts/active-filters.tsx'
import { Button, Empty, Heading, Problem } from '../parts/basic-components.tsx'
import { ChooseMail } from '../parts/chart.tsx'
import { ChooseKey, useKeys } from '../parts/choose-key.tsx'
import { DataTable, Pager, TableSkeleton, useSelection } from '../parts/data-table.tsx'
import { EmailActions } from '../parts/email-actions.tsx'
import { useEmailColumns } from '../parts/email-columns.tsx'
import { useNews } from '../parts/event-stream.ts'
import { SaveList } from '../parts/file-transfer.tsx'
import { Field, Select } from '../parts/form-controls.tsx'
import { DownIcon } from '../parts/icons.tsx'
import { useList } from '../parts/paged-lists.tsx'
import { dayInWords } from '../parts/time-and-copy.tsx'
import { ChooseRange, instantsOf, isCustom } from '../parts/time-range.tsx'
import { mailOf, testOf, useFilters, useTyped } from '../parts/url-params.ts'
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
  'event',
  'within',
  'after',
  'before',
] as const
const typed = ['from', 'tag', 'domain', 'metadata', 'after', 'before'] as const
const rare = ['event', 'from', 'tag', 'domain', 'credentialId', 'metadata', 'after', 'before'] as const
/** Filters that make a list a search, for which the API bounds the results. */
const searchNames = ['subject', 'domain', 'credentialId', 'metadata', 'event'] as const
const nothing = Object.fromEntries(filterNames.map((name) => [name, undefined]))
type Filters = Record<string, string | undefined>

/** Long because the list, its filters and its selection share their state. */
export function EmailsPage() {
  const { scoped, tenantId } = useHere()
  const [filters, change] = useFilters()
  const [resets, setResets] = useState(0)
  const reset = () => setResets(resets + 1)
  const client = useQueryClient()
  const mail = mailOf(filters.mail)
  const wanted = Object.fromEntries(filterNames.map((name) => [name, filters[name]]))
  const pathOf = (page: { page: string | number | undefined; perPage: number; before?: string }) =>
    scoped('/v1/emails', { ...wanted, within: undefined, ...instantsOf(filters), ...page, test: testOf(mail) })
  const list = useList<ListedEmail>('emails', pathOf({ page: filters.page, perPage: 30 }), everyMs)
  const { data, error } = list
  const isFiltered = filterNames.some((name) => filters[name])
  const isSearch = searchNames.some((name) => filters[name]) || (Boolean(filters.status) && mail === 'test')
  // A search may take longer than the time to the next event, so a running one is not restarted.
  useNews(tenantId, () => void (isFiltered || client.invalidateQueries({ queryKey: ['emails'] }, { cancelRefetch: false })))
  const columns = useEmailColumns(data?.items ?? [])
  const place = JSON.stringify([tenantId, filters])
  const selection = useSelection(place, data?.items ?? [], { keyOf: (one) => one.id, nameOf: (one) => one.to })
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
      <Presets filters={filters} change={change} onReset={reset} />
      <FilterForm filters={filters} change={change} resets={resets} />
      <ActiveFilters labels={words.filters} names={filterNames} filters={filters} change={change} onClear={reset} valueOf={valueInWords} />
      <Problem error={error} />
      {!data && !error && <TableSkeleton rows={12} />}
      {data?.items.length === 0 && <NoneListed mail={mail} isFiltered={isFiltered} onShow={() => change({ mail: 'test' })} />}
      {data && data.items.length > 0 && (
        <DataTable
          label={texts.pages.emails}
          columns={columns}
          items={data.items}
          keyOf={(one) => one.id}
          selection={selection}
          groupOf={(one) => dayInWords(one.timestampIso)}
        />
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

/** On a phone, the row has no room for it. */
const scarce = { status: 'pending' }
const presets = [
  { name: words.presets.all, set: {} },
  { name: texts.status.pending, set: scarce },
  ...(['sent', 'softfail', 'hardfail', 'bounced', 'held'] as const).map((status) => ({
    name: texts.status[status],
    set: { status },
  })),
]

const countedForMs = 60_000
/** Delivered mail needs no action, and would be the longest count. */
const uncounted: readonly string[] = ['sent']

/** The number of emails with a status, as the API bounds it. */
function usePresetCounts(mail: ReturnType<typeof mailOf>): Readonly<Record<string, string>> {
  const { scoped } = useHere()
  const statuses = presets.flatMap(({ set }) => ('status' in set && !uncounted.includes(set.status) ? [set.status] : []))
  const counts = useQueries({
    queries: statuses.map((status) => {
      const path = scoped('/v1/emails', { status, perPage: 1, test: testOf(mail) })
      return { queryKey: ['email-count', path], queryFn: () => getPage<ListedEmail>(path), staleTime: countedForMs }
    }),
  })
  const shown = (total: number) =>
    total === maxCounted && mail === 'test' ? words.presets.atLeast(total.toLocaleString()) : total.toLocaleString()
  return Object.fromEntries(
    statuses.flatMap((status, index) => (counts[index]?.data?.total ? [[status, shown(counts[index].data.total)]] : [])),
  )
}

interface PresetsProps {
  filters: Filters
  change: (next: Filters) => void
  onReset: () => void
}

/** Filters with one click. */
function Presets({ filters, change, onReset }: PresetsProps) {
  const counts = usePresetCounts(mailOf(filters.mail))
  const isNow = (set: Filters) => filterNames.every((name) => (filters[name] ?? '') === (set[name] ?? ''))
  return (
    <fieldset className="mb-3 flex flex-wrap gap-0.5 max-md:-mx-1.5">
      <legend className="sr-only">{words.presets.label}</legend>
      {presets.map(({ name, set }) => {
        const next: Filters = set
        return (
          <Button
            key={name}
            small
            kind="quiet"
            aria-pressed={isNow(next)}
            className={`aria-pressed:bg-line/70 aria-pressed:text-ink ${set === scarce ? 'max-md:hidden' : ''}`}
            onClick={() => {
              change({ ...nothing, ...next })
              onReset()
            }}
          >
            {name}
            {next.status && counts[next.status] && (
              <span className="font-normal text-soft tabular-nums max-md:hidden">{counts[next.status]}</span>
            )}
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

function valueInWords(name: (typeof filterNames)[number], value: string): string | undefined {
  if (name === 'status') return texts.status[value as Status]
  return name === 'event' ? words.events[value as keyof typeof words.events] : undefined
}

/** A text with an at sign is an address; other words are looked for in the subject. */
const searchedBy = (text: string): Filters => (text.includes('@') ? { to: text, subject: undefined } : { to: undefined, subject: text })

const textsOf = (filters: Filters) =>
  Object.fromEntries(typed.map((name) => [name, filters[name] ?? ''])) as Record<(typeof typed)[number], string>

interface FilterFormProps {
  filters: Filters
  change: (next: Filters) => void
  /** Changes when all filters are replaced, typed text too. */
  resets: number
}

/** Long because it is one form: its fields in order. */
function FilterForm({ filters, change, resets }: FilterFormProps) {
  const [isOpen, setOpen] = useState(rare.some((name) => filters[name]) || isCustom(filters))
  const sought = filters.to ?? filters.subject ?? ''
  const [given, setGiven] = useTyped({ search: sought, ...textsOf(filters) }, resets)
  const keys = useKeys(isOpen)
  const chooseRange = (changes: Filters) => {
    // A range in words replaces typed dates too.
    if ('after' in changes) for (const name of ['after', 'before'] as const) setGiven(name, '')
    // The date fields are among the further filters.
    if (changes.within === 'custom') setOpen(true)
    change(changes)
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const dates = given.after || given.before ? { within: undefined } : {}
    const searched = given.search === sought ? {} : searchedBy(given.search.trim())
    change({ ...Object.fromEntries(typed.map((name) => [name, given[name].trim()])), ...searched, ...dates })
  }
  const field = (name: (typeof typed)[number], rest: { placeholder?: string; type?: string; pattern?: string } = {}) => (
    <Field label={words.filters[name]} value={given[name]} onChange={({ target }) => setGiven(name, target.value)} {...rest} />
  )
  return (
    <search className="mb-4 block">
      <form onSubmit={submit}>
        <div className="grid grid-cols-[minmax(0,1fr)_auto] items-end gap-2 md:flex">
          <div className="min-w-0 md:w-96">
            <Field
              bare
              type="search"
              label={words.search}
              placeholder={words.searchExample}
              value={given.search}
              onChange={({ target }) => setGiven('search', target.value)}
            />
          </div>
          <Button type="submit" className="md:order-last">
            {texts.actions.search}
          </Button>
          <ChooseRange bare label={words.filters.within} filters={filters} onChange={chooseRange} />
          <Button
            kind="quiet"
            aria-expanded={isOpen}
            aria-controls={rareFilters}
            onClick={() => setOpen(!isOpen)}
            className="justify-self-end max-md:-mr-1 md:order-last"
          >
            {isOpen ? words.fewer : words.more}
            <DownIcon size={14} className={isOpen ? 'rotate-180' : ''} />
          </Button>
        </div>
        <div id={rareFilters} className={`${isOpen ? 'grid' : 'hidden'} mt-3 grid-cols-2 items-end gap-x-2 gap-y-3 md:grid-cols-4`}>
          <Select
            label={words.filters.event}
            value={filters.event ?? ''}
            onChange={(event) => change({ event })}
            choices={[{ value: '', label: words.any }, ...Object.entries(words.events).map(([value, label]) => ({ value, label }))]}
          />
          {field('from', { placeholder: words.examples.from })}
          {field('tag')}
          {field('domain', { placeholder: words.examples.domain })}
          {field('metadata', { placeholder: words.examples.metadata, pattern: '.+:.*' })}
          {field('after', { type: 'datetime-local' })}
          {field('before', { type: 'datetime-local' })}
          <ChooseKey value={filters.credentialId ?? ''} keys={keys} onChange={(credentialId) => change({ credentialId })} />
        </div>
      </form>
    </search>
  )
}

const rareFilters = 'rare-filters'
