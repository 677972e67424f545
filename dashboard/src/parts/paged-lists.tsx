/** Paged lists, optionally reloaded automatically, and the way back from an item to its list. */
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { getPage, type Page } from '../api-client.ts'
import { Empty, Problem, Skeleton } from './basic-components.tsx'
import { type Column, DataTable, Pager, type Selection, TableSkeleton } from './data-table.tsx'
import { BackIcon } from './icons.tsx'
import { useFilters } from './url-params.ts'

/** One page of a list; the previous page stays visible while the next one loads. */
export const useList = <Item,>(name: string, path: string, everyMs?: number) =>
  useQuery({
    queryKey: [name, path],
    queryFn: () => getPage<Item>(path),
    placeholderData: keepPreviousData,
    ...(everyMs === undefined ? {} : { refetchInterval: everyMs }),
  })

interface PageState<Item> {
  data: Page<Item> | undefined
  error: unknown
}

/** The error, the skeleton, the empty state, the rows and the pager. */
export function Listing<Item>(props: {
  label: string
  list: PageState<Item>
  columns: readonly Column<Item>[]
  keyOf: (item: Item) => string
  empty: ReactNode
  error?: unknown
  selection?: Selection
  /** The number of all items in words, where they are not the rows. */
  total?: (count: string) => string
  /** The column by which the service has sorted. */
  sortedBy?: string
}) {
  const { data, error } = props.list
  const [, change] = useFilters()
  return (
    <>
      <Problem error={props.error ?? error} />
      {!data && !error && <TableSkeleton />}
      {data?.items.length === 0 && <Empty>{props.empty}</Empty>}
      {data && data.items.length > 0 && (
        <DataTable
          label={props.label}
          columns={props.columns}
          items={data.items}
          keyOf={props.keyOf}
          isWhole={data.totalPages <= 1}
          selection={props.selection}
          sortedBy={props.sortedBy}
        />
      )}
      {data && <Pager {...data} totalIn={props.total} onPage={(page) => change({ page: String(page) })} />}
    </>
  )
}

/** The link of a table's row, which j, k and a click on the row use. */
export const RowLink = ({ to, search = {}, children }: { to: string; search?: Record<string, string>; children: ReactNode }) => (
  <Link to={to as '/'} search={search} data-row-link className="font-medium [overflow-wrap:anywhere] hover:underline">
    {children}
  </Link>
)

export const BackTo = ({ to, children }: { to: string; children: string }) => (
  <p className="mb-2 text-xs">
    <Link to={to as '/'} search={{}} className="inline-flex items-center gap-0.5 rounded py-1 text-soft hover:text-ink">
      <BackIcon size={14} />
      {children}
    </Link>
  </p>
)

/** Placeholder while content is loading. */
export const Waiting = ({ error }: { error: unknown }) => (error ? <Problem error={error} /> : <Skeleton lines={6} />)
