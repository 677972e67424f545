/**
 * Tables of items: sortable columns where the whole list is loaded, row selection with an action bar, and a link per row. On a phone each row
 * becomes a card. j, k, Enter and x work on the rows (shortcuts.ts).
 */
import { Fragment, type MouseEvent, type ReactNode, useEffect, useState } from 'react'
import { texts } from '../texts.ts'
import { Button, IconButton } from './basic-components.tsx'
import { AscendingIcon, CloseIcon, DescendingIcon } from './icons.tsx'

export interface Column<Item> {
  name: string
  cell: (item: Item) => ReactNode
  /** The value to sort by. */
  by?: (item: Item) => string | number
  isNumber?: boolean
  /**
   * The place on a phone: beside the title, at the top right, named on a line of its own (default), without its name on a line that it shares
   * with its neighbours or has for itself, or not shown.
   */
  phone?: 'title' | 'side' | 'menu' | 'named' | 'line' | 'full' | 'none'
  /** Not shown on a phone: the value is absent or the default. */
  isUsual?: (item: Item) => boolean
  className?: string
  /** The header is only for screen readers. */
  isUnnamed?: boolean
}

export interface Selection {
  chosen: ReadonlySet<string>
  onChange: (chosen: ReadonlySet<string>) => void
  nameOf: (key: string) => string
}

/** A selection among these items. It ends with a change of `place`, such as another page or filter. */
export function useSelection<Item>(
  place: string,
  items: readonly Item[],
  { keyOf, nameOf }: { keyOf: (item: Item) => string; nameOf: (item: Item) => string },
): Selection {
  const [made, setMade] = useState({ place, keys: none })
  const names = new Map(items.map((one) => [keyOf(one), nameOf(one)]))
  const chosen = made.place === place ? new Set([...made.keys].filter((key) => names.has(key))) : none
  return { chosen, onChange: (keys) => setMade({ place, keys }), nameOf: (key) => names.get(key) ?? key }
}
const none: ReadonlySet<string> = new Set()

interface DataTableProps<Item> {
  label: string
  columns: readonly Column<Item>[]
  items: readonly Item[]
  keyOf: (item: Item) => string
  /** False for one page of a longer list: its order comes from the service. */
  isWhole?: boolean
  selection?: Selection | undefined
  /** The column by which the items come sorted, the greatest first. */
  sortedBy?: string | undefined
  /** A line above the first item of each group, such as a day; only for items in the service's order. */
  groupOf?: (item: Item) => string
}

/** On a phone, check boxes appear with a button, because the cards have no room for them. */
export function DataTable<Item>(props: DataTableProps<Item>) {
  const { label, columns, items, keyOf, isWhole = false, selection, sortedBy, groupOf } = props
  const [isSelecting, setSelecting] = useState(false)
  const [order, setOrder] = useState(sortedBy === undefined ? undefined : { name: sortedBy, isDown: true })
  const sorted = isWhole ? sort(items, columns.find(({ name }) => name === order?.name)?.by, order?.isDown ?? false) : items
  const onSort = (name: string) => setOrder({ name, isDown: order?.name === name && !order.isDown })
  const width = columns.length + (selection ? 1 : 0)
  return (
    <>
      {selection && (
        <p className="mb-2 text-right md:hidden">
          <Button small aria-pressed={isSelecting} onClick={() => setSelecting(!isSelecting)}>
            {isSelecting ? texts.actions.done : texts.table.choose}
          </Button>
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable */}
      <section aria-label={label} tabIndex={0} className="relative overflow-x-auto rounded-lg border border-line">
        <table className="rows w-full text-left text-sm" data-cards data-selecting={isSelecting}>
          <thead className="border-b border-line bg-sheet text-soft">
            <tr>
              {selection && <SelectAll selection={selection} keys={items.map(keyOf)} />}
              {columns.map((column) => (
                <Header key={column.name} column={column} order={order} onSort={isWhole && column.by ? onSort : undefined} />
              ))}
            </tr>
          </thead>
          <tbody className="divide-y divide-line">
            {sorted.map((item, index) => (
              <Fragment key={keyOf(item)}>
                <GroupLine of={groupOf?.(item)} before={index === 0 ? undefined : groupOf?.(sorted[index - 1] as Item)} width={width} />
                <Row item={item} id={keyOf(item)} columns={columns} selection={selection} />
              </Fragment>
            ))}
          </tbody>
        </table>
      </section>
    </>
  )
}

/** Nothing for an item of the same group as the one before. */
const GroupLine = ({ of: name, before, width }: { of: string | undefined; before: string | undefined; width: number }) =>
  name === undefined || name === before ? null : (
    <tr data-group>
      <td colSpan={width} data-phone="full">
        {name}
      </td>
    </tr>
  )

function sort<Item>(items: readonly Item[], by: Column<Item>['by'], isDown: boolean): readonly Item[] {
  if (!by) return items
  const compare = (a: Item, b: Item) => {
    const [x, y] = [by(a), by(b)]
    return typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y))
  }
  return items.toSorted((a, b) => (isDown ? compare(b, a) : compare(a, b)))
}

function Header<Item>(props: {
  column: Column<Item>
  order: { name: string; isDown: boolean } | undefined
  onSort: ((name: string) => void) | undefined
}) {
  const { column, order, onSort } = props
  const isSorted = order?.name === column.name
  const name = column.isUnnamed ? <span className="sr-only">{column.name}</span> : column.name
  return (
    <th
      scope="col"
      {...(isSorted ? { 'aria-sort': order.isDown ? 'descending' : 'ascending' } : {})}
      className={column.isNumber ? 'text-right' : ''}
    >
      {onSort ? (
        <button
          type="button"
          onClick={() => onSort(column.name)}
          className={`group inline-flex items-center gap-1 rounded align-middle hover:text-ink ${column.isNumber ? 'flex-row-reverse' : ''}`}
        >
          {name}
          {isSorted && order.isDown ? (
            <DescendingIcon size={12} />
          ) : (
            <AscendingIcon size={12} className={isSorted ? '' : 'opacity-0 group-hover:opacity-60 group-focus-visible:opacity-60'} />
          )}
        </button>
      ) : (
        name
      )}
    </th>
  )
}

function SelectAll({ selection: { chosen, onChange }, keys }: { selection: Selection; keys: readonly string[] }) {
  const count = keys.filter((key) => chosen.has(key)).length
  return (
    <th scope="col" className="w-0">
      <input
        type="checkbox"
        aria-label={texts.table.selectAll}
        className="block size-4"
        checked={count > 0 && count === keys.length}
        ref={(box) => {
          if (box) box.indeterminate = count > 0 && count < keys.length
        }}
        onChange={() => onChange(new Set(count === keys.length ? [] : keys))}
      />
    </th>
  )
}

const interactive = 'a, button, input, label, summary, select'

/** A click anywhere on a row opens its link, unless it hits another control or selects text. */
function openRow(event: MouseEvent<HTMLTableRowElement>): void {
  if ((event.target as Element).closest(interactive) || getSelection()?.toString()) return
  event.currentTarget.querySelector<HTMLElement>('[data-row-link]')?.click()
}

function Row<Item>(props: { item: Item; id: string; columns: readonly Column<Item>[]; selection: Selection | undefined }) {
  const { item, id, columns, selection } = props
  const isChosen = selection?.chosen.has(id) ?? false
  const toggle = () => {
    const next = new Set(selection?.chosen)
    if (!next.delete(id)) next.add(id)
    selection?.onChange(next)
  }
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the row's link does the same for the keyboard
    <tr onClick={openRow} {...(selection ? { 'data-selected': isChosen } : {})}>
      {selection && (
        <td className="w-0" data-phone="check">
          <input
            type="checkbox"
            aria-label={texts.table.select(selection.nameOf(id))}
            className="block size-4"
            checked={isChosen}
            onChange={toggle}
          />
        </td>
      )}
      {columns.map(({ name, cell, isNumber, phone = 'named', isUsual, className = '' }) => (
        <td
          key={name}
          data-name={name}
          data-phone={isUsual?.(item) ? 'none' : phone}
          className={`${isNumber ? 'tabular-nums md:text-right' : ''} ${className}`}
        >
          {cell(item)}
        </td>
      ))}
    </tr>
  )
}

/** The actions for the selected rows, at the bottom of the screen while rows are selected. */
export function BulkBar({ selection: { chosen, onChange }, children }: { selection: Selection; children: ReactNode }) {
  if (chosen.size === 0) return null
  return (
    <section
      aria-label={texts.table.actions}
      className="pop sticky bottom-4 z-10 mx-auto mt-3 flex w-fit max-w-full flex-wrap items-center gap-2 rounded-xl border border-line bg-raise p-2 pl-4 text-sm shadow-raise"
    >
      <span aria-live="polite" className="mr-2 font-medium">
        {texts.table.chosen(chosen.size)}
      </span>
      {children}
      <IconButton label={texts.table.none} onClick={() => onChange(new Set())}>
        <CloseIcon size={16} />
      </IconButton>
    </section>
  )
}

/** A plain table that scrolls horizontally on a narrow screen. */
export function Table({ label, columns, children }: { label: string; columns: readonly string[]; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable
    <section aria-label={label} tabIndex={0} className="relative overflow-x-auto rounded-lg border border-line">
      <table className="rows w-full text-left text-sm">
        <thead className="border-b border-line bg-sheet text-soft">
          <tr>
            {columns.map((name) => (
              <th key={name} scope="col">
                {name || <span className="sr-only">{texts.table.actions}</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line [&_td]:align-top">{children}</tbody>
      </table>
    </section>
  )
}

/** The frame of a table whose rows are loading. */
export const TableSkeleton = ({ rows = 8 }: { rows?: number }) => (
  <div role="status" className="divide-y divide-line overflow-hidden rounded-lg border border-line">
    <span className="sr-only">{texts.loading}</span>
    <div className="h-7 bg-sheet" />
    {Array.from({ length: rows }, (_, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: the rows are alike
      <div key={index} className="flex items-center gap-6 px-3 py-3">
        <div className="skeleton h-3.5 w-1/4" />
        <div className="skeleton h-3.5 w-1/3" />
        <div className="skeleton ml-auto h-3.5 w-16" />
      </div>
    ))}
  </div>
)

interface PagerProps {
  page: number
  totalPages: number
  total: number
  /** Of this page. */
  items?: readonly unknown[]
  /** Counting stopped at `total`. */
  isAtLeast?: boolean
  /** The total in words, if the items are not the rows. */
  totalIn?: ((count: string) => string) | undefined
  onPage: (page: number) => void
}

/** "31–60 of ": the last page ends with the last row. */
function rowsOf({ page, totalPages, total }: PagerProps, count: number): string {
  const last = page < totalPages ? page * count : total
  return texts.pager.rows((last - count + 1).toLocaleString(), last.toLocaleString())
}

/** A page after the last one, such as of an old address, leads to the last one. */
export function Pager(props: PagerProps) {
  const { page, totalPages, onPage } = props
  const isPastEnd = props.items?.length === 0 && totalPages > 0 && page > totalPages
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each page; the function is another one at each drawing
  useEffect(() => {
    if (isPastEnd) onPage(totalPages)
  }, [isPastEnd, page, totalPages])
  if (props.total === 0) return null
  return (
    <nav aria-label={texts.pager.label} className="mt-3 flex flex-wrap items-center justify-between gap-2 text-xs text-soft">
      <span className="tabular-nums">
        {props.totalPages > 1 && props.items && !props.totalIn && rowsOf(props, props.items.length)}
        {(props.totalIn ?? ((count) => texts.pager.total(count, props.isAtLeast ?? false)))(props.total.toLocaleString())}
        {props.totalPages > 1 && (props.totalIn || !props.items) && texts.pager.where(props.page, props.totalPages)}
      </span>
      {props.totalPages > 1 && (
        <span className="flex gap-2">
          <Button small disabled={props.page <= 1} onClick={() => props.onPage(props.page - 1)}>
            {texts.pager.newer}
          </Button>
          <Button small disabled={props.page >= props.totalPages} onClick={() => props.onPage(props.page + 1)}>
            {texts.pager.older}
          </Button>
        </span>
      )}
    </nav>
  )
}
