/** Paged lists, optionally reloaded automatically, and lists of items with their own page. */
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { getPage, type Page } from '../api-client.ts'
import { texts } from '../texts.ts'
import { Empty, Pager, Problem, Table } from './basic-components.tsx'
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

/** The error, the empty state, the rows and the pager. */
export function Listing<Item>(props: {
  label: string
  list: PageState<Item>
  columns: readonly string[]
  empty: string
  error?: unknown
  row: (item: Item) => ReactNode
}) {
  const { data, error } = props.list
  const [, change] = useFilters()
  return (
    <>
      <Problem error={props.error ?? error} />
      {data?.items.length === 0 && <Empty>{props.empty}</Empty>}
      {data && data.items.length > 0 && (
        <Table label={props.label} columns={props.columns}>
          {data.items.map(props.row)}
        </Table>
      )}
      {data && <Pager {...data} onPage={(page) => change({ page: String(page) })} />}
    </>
  )
}

/** Rows that link to a page: name at the left, state at the right. */
export const RowLink = (props: { to: string; left: ReactNode; right: ReactNode }) => (
  <li>
    <Link
      to={props.to as '/'}
      search={{}}
      className="flex flex-wrap items-center justify-between gap-2 px-2 py-3 text-sm hover:bg-sheet [overflow-wrap:anywhere]"
    >
      <span className="min-w-0">{props.left}</span>
      <span className="flex items-center gap-3 text-soft">{props.right}</span>
    </Link>
  </li>
)

export const BackTo = ({ to, children }: { to: string; children: string }) => (
  <p className="mb-2 text-sm">
    <Link to={to as '/'} search={{}} className="text-accent underline">
      {children}
    </Link>
  </p>
)

/** Placeholder while content is loading. */
export const Waiting = ({ error }: { error: unknown }) => (error ? <Problem error={error} /> : <p className="text-soft">{texts.loading}</p>)
