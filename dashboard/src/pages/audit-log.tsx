/** The audit log, for owners. */
import { Link } from '@tanstack/react-router'
import type { ShownAuditEntry } from '../api-types.ts'
import { ActiveFilters } from '../parts/active-filters.tsx'
import { areaOf, ChooseEntries } from '../parts/audit-filters.tsx'
import { useNames } from '../parts/audit-names.ts'
import { Empty, Heading, Problem } from '../parts/basic-components.tsx'
import { type Column, DataTable, Pager, TableSkeleton } from '../parts/data-table.tsx'
import { SaveList } from '../parts/file-transfer.tsx'
import { RowLink, useList } from '../parts/paged-lists.tsx'
import { dayInWords, Time } from '../parts/time-and-copy.tsx'
import { instantsOf } from '../parts/time-range.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.audit

const filterNames = ['actor', 'action', 'within', 'after', 'before'] as const
type Filters = Record<string, string | undefined>

/** The query of the filters in the page's address. */
const parametersOf = (filters: Filters) => ({ actor: filters.actor, action: filters.action, ...instantsOf(filters) })

export function AuditPage() {
  const { scoped } = useHere()
  const [filters, change] = useFilters()
  const list = useList<ShownAuditEntry>('audit', scoped('/dashboard/api/audit', { ...parametersOf(filters), page: filters.page }))
  const { data, error } = list
  const columns = useColumns(useNames(data?.items ?? []))
  const isFiltered = filterNames.some((name) => filters[name])
  return (
    <>
      <Heading title={texts.pages.audit} about={words.about}>
        <SaveAudit filters={filters} />
      </Heading>
      <ChooseEntries filters={filters} change={change} entries={data?.items ?? []} />
      <ActiveFilters labels={words.filters} names={filterNames} filters={filters} change={change} valueOf={areaOf} />
      <Problem error={error} />
      {!data && !error && <TableSkeleton />}
      {data?.items.length === 0 && <Empty>{isFiltered ? words.emptyFiltered : words.empty}</Empty>}
      {data && data.items.length > 0 && (
        <DataTable
          label={texts.pages.audit}
          columns={columns}
          items={data.items}
          keyOf={(one) => String(one.id)}
          groupOf={(one) => dayInWords(one.at)}
        />
      )}
      {data && <Pager {...data} onPage={(page) => change({ page: String(page) })} />}
    </>
  )
}

function useColumns(named: ReadonlyMap<string, string>): readonly Column<ShownAuditEntry>[] {
  const { tenants, tenantId } = useHere()
  const { names } = words
  const tenantName = (id: string | null) => (id === null ? '' : (tenants.find((one) => one.id === id)?.name ?? id))
  const ofTenant: Column<ShownAuditEntry> = {
    name: names.tenant,
    phone: 'none',
    className: 'whitespace-nowrap',
    cell: (one) => tenantName(one.tenantId),
  }
  return [
    { name: names.action, phone: 'title', cell: (one) => <Action of={one} /> },
    {
      name: names.target,
      phone: 'line',
      className: 'md:min-w-48',
      // A cell without content would leave its dot on a phone.
      isUsual: (one) => isEmpty(targetOf(one, named)),
      cell: (one) => <Target of={targetOf(one, named)} />,
    },
    {
      name: names.actor,
      phone: 'line',
      className: '[overflow-wrap:anywhere]',
      cell: ({ actor: { kind, name } }) => (
        <>
          {kind !== 'member' && <span className="text-soft">{words.kinds[kind]} </span>}
          {name}
        </>
      ),
    },
    ...(tenantId === undefined && tenants.length > 1 ? [ofTenant] : []),
    { name: names.ipAddress, phone: 'none', className: 'font-mono text-xs text-soft', cell: (one) => one.ipAddress },
    { name: names.time, phone: 'side', className: 'text-soft', cell: (one) => <Time at={one.at} clock="seconds" ofDay /> },
  ]
}

/** A sentence such as "Created a key". An action without one, such as `pool.assign`, is written as "Pool: assign". */
function actionInWords(code: string): string {
  const [object = '', verb = '', more] = code.split('.')
  const known = (record: Readonly<Record<string, string>>, name: string) => (Object.hasOwn(record, name) ? record[name] : undefined)
  const sentence = known(words.sentences, code)
  if (sentence !== undefined) return sentence
  const did = known(words.verbs, verb)
  const what = known(words.objects, object) ?? known(words.objects, `${object}s`)
  return did !== undefined && what !== undefined && more === undefined ? `${did} ${what}` : codeInWords(code)
}

function codeInWords(code: string): string {
  const [area = '', ...rest] = code.split('.').map((part) => spaced(part).replaceAll(/[-_]/g, ' '))
  return [area.charAt(0).toUpperCase() + area.slice(1), rest.join(' ')].filter((one) => one !== '').join(': ')
}

/** In words; the tooltip has the code. The entry of a key leads to its request. */
function Action({ of: { action, requestId, actor, data } }: { of: ShownAuditEntry }) {
  const way = action === signIn ? words.ways[String(data['by']) as keyof typeof words.ways] : undefined
  const sentence = way ?? actionInWords(action)
  return (
    <span data-tip={action}>
      {requestId !== null && actor.kind === 'key' ? (
        <RowLink to={`/logs/${requestId}`}>{sentence}</RowLink>
      ) : (
        <span className="font-medium">{sentence}</span>
      )}
    </span>
  )
}

/** Saves the entries that match the filters as CSV. */
function SaveAudit({ filters }: { filters: Filters }) {
  const { scoped } = useHere()
  return (
    <SaveList<ShownAuditEntry>
      name="audit-log.csv"
      columns={['time', 'action', 'actor_kind', 'actor', 'target', 'tenant_id', 'ip_address', 'request_id']}
      pathOf={(page) => scoped('/dashboard/api/audit', { ...parametersOf(filters), ...page })}
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

/** `trackOpens` is written as "track opens", `tenantId` as "tenant". */
const fieldInWords = (name: string) => spaced(name).replace(/ id$/, '')

/** `emailId` is written as `email id`. */
const inWords = (name: string) => words.dataNames[name as keyof typeof words.dataNames] ?? spaced(name)

interface ShownTarget {
  title: string | undefined
  others: readonly [name: string, value: string][]
}

const isEmpty = ({ title, others }: ShownTarget) => title === undefined && others.length === 0

/** The name of the object, or its id, then the other facts. The same value is shown once. The fields of a new object are left out. */
function targetOf({ action, data }: ShownAuditEntry, named: ReadonlyMap<string, string>): ShownTarget {
  const isNew = /\.(?:create|add)$/.test(action)
  // The address itself is not recorded, and nothing shows a suppression by its id.
  const isNameless = action.startsWith('suppressions.')
  const facts = factsOf(data)
    .filter(([name]) => !((isNew && name === 'fields') || (isNameless && name === 'id') || (action === signIn && name === 'by')))
    .map(([name, value]): [string, string] => (name === 'fields' ? [name, value.split(', ').map(fieldInWords).join(', ')] : [name, value]))
  const isIdOf = (area: string) => action.startsWith(area) && facts.find(([name]) => idNames.includes(name))?.[1]
  const known = named.get(isIdOf('routes.') || isIdOf('tracking.') || '')
  const title = known ?? titles.flatMap((name) => facts.find(([key]) => key === name)?.[1] ?? [])[0]
  const others = facts.filter(
    ([name, value], index) =>
      value !== title &&
      !(title && name === 'id') &&
      !(known && (name === 'name' || idNames.includes(name))) &&
      facts.findIndex(([, other]) => other === value) === index,
  )
  return { title, others }
}

/** On a phone one line of words. An email's id leads to the email. */
const Target = ({ of: { title, others } }: { of: ShownTarget }) => (
  <>
    {title && <p className="[overflow-wrap:anywhere] max-md:inline">{title} </p>}
    <dl className="flex flex-wrap gap-x-3 text-xs empty:hidden max-md:inline">
      {others.map(([name, value]) => (
        <div key={name} className="flex min-w-0 gap-1.5 max-md:inline">
          <dt className={`shrink-0 text-soft max-md:inline ${name === 'id' ? 'sr-only' : ''}`}>{inWords(name)} </dt>
          <dd className={`min-w-0 [overflow-wrap:anywhere] max-md:inline ${name === 'id' ? 'font-mono text-soft' : ''}`}>
            {name === 'emailId' ? (
              <Link to="/emails/$emailId" params={{ emailId: value }} search={{}} className="link font-mono">
                {value}
              </Link>
            ) : (
              value
            )}{' '}
          </dd>
        </div>
      ))}
    </dl>
  </>
)

const signIn = 'sessions.begin'

/** Facts that name the object, the best first. */
const titles = ['name', 'address', 'transportName', 'destination']

/** Of the object itself, in a path and in an answer. */
const idNames = ['id', 'routeId', 'trackingId']
