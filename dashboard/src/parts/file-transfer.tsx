/** Long file operations in the browser: export of a whole list as CSV, and import of a file in parts. Both show their progress. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { getPage } from '../api-client.ts'
import { texts } from '../texts.ts'
import { Button, Problem } from './basic-components.tsx'
import { saveCsv } from './csv.ts'

export const Progress = ({ done, total, label }: { done: number; total: number; label: string }) => (
  <div aria-live="polite" className="text-sm text-soft">
    <progress aria-label={label} max={Math.max(1, total)} value={done} className="mr-2 align-middle" />
    {texts.files.soFar(done.toLocaleString(), total.toLocaleString())}
  </div>
)

const perPage = 100
/** Larger exports should use the API. */
const maxRows = 100_000

/** The next millisecond, because emails accepted in the same millisecond as the last row may follow it. */
const justAfter = (timestampIso: string) => new Date(Date.parse(timestampIso) + 1).toISOString()

/** Exports a list with its filters, complete; `pathOf` returns the path of one page. */
export function SaveList<Item extends object>(props: {
  name: string
  columns: readonly string[]
  pathOf: (page: { page: number; perPage: number; before?: string }) => string
  row: (item: Item) => readonly (string | number)[]
  /** For a list, newest first, that grows while it is read: reading continues from the time of the last row, and no row is taken twice. */
  moves?: (item: Item) => { id: string; timestampIso: string }
  /** For a list that grows at its beginning: rows that moved to the next page are not taken twice. `moves` has its own. */
  idOf?: (item: Item) => string
}) {
  const [progress, setProgress] = useState<{ done: number; total: number }>()
  const saving = useMutation({
    mutationFn: async () => {
      const rows: (readonly (string | number)[])[] = []
      const seen = new Set<string>()
      const isNew = (item: Item) => {
        const id = props.moves?.(item).id ?? props.idOf?.(item)
        const known = id !== undefined && seen.has(id)
        if (id !== undefined) seen.add(id)
        return !known
      }
      let total = 0
      let page = 1
      let before: string | undefined
      for (;;) {
        const read = await getPage<Item>(props.pathOf({ page, perPage, ...(before === undefined ? {} : { before }) }))
        rows.push(...read.items.filter(isNew).map(props.row))
        total = Math.max(total, read.total, rows.length)
        setProgress({ done: rows.length, total: Math.min(total, maxRows) })
        const last = read.items.at(-1)
        // Not by the number of pages, because a search is counted only up to a limit.
        if (last === undefined || read.items.length < perPage || rows.length >= maxRows) break
        const next = props.moves && justAfter(props.moves(last).timestampIso)
        page = next === before ? page + 1 : 1
        before = next
      }
      saveCsv(props.name, [props.columns, ...rows.slice(0, maxRows)])
      return rows.length >= maxRows ? maxRows : undefined
    },
    onSettled: () => setProgress(undefined),
  })
  return (
    <>
      <Button disabled={saving.isPending} onClick={() => saving.mutate()}>
        {texts.files.save}
      </Button>
      {progress && <Progress {...progress} label={texts.files.save} />}
      {saving.data !== undefined && <p role="status">{texts.files.cut(saving.data)}</p>}
      <Problem error={saving.error} />
    </>
  )
}
