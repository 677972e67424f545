/** Long work on files in the browser: every page of a list saved as CSV, a file read and sent in parts; both show how far they are. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { getPage } from '../api.ts'
import { texts } from '../texts.ts'
import { Button, Problem } from './basics.tsx'
import { saveCsv } from './csv.ts'

export const Progress = ({ done, total, label }: { done: number; total: number; label: string }) => (
  <div aria-live="polite" className="text-sm text-soft">
    <progress aria-label={label} max={Math.max(1, total)} value={done} className="mr-2 align-middle" />
    {texts.files.soFar(done.toLocaleString(), total.toLocaleString())}
  </div>
)

const perPage = 100
/** A larger file is better had from the API. */
const mostRows = 100_000

/** Saves what a list shows under its filters, all pages of it; `pathOf` gives the path of one page. */
export function SaveList<Item>(props: {
  name: string
  columns: readonly string[]
  pathOf: (page: { page: number; perPage: number }) => string
  row: (item: Item) => readonly (string | number)[]
  /** How far the list goes, where that is less than a file may be. */
  mostListed?: number
}) {
  const [progress, setProgress] = useState<{ done: number; total: number }>()
  const saving = useMutation({
    mutationFn: async () => {
      const most = Math.min(mostRows, props.mostListed ?? mostRows)
      const rows: (readonly (string | number)[])[] = [props.columns]
      for (let page = 1; ; page++) {
        const read = await getPage<Item>(props.pathOf({ page, perPage }))
        rows.push(...read.items.map(props.row))
        setProgress({ done: rows.length - 1, total: Math.min(Math.max(read.total, rows.length - 1), most) })
        // Not by the number of pages: a search is counted only so far.
        if (read.items.length < perPage || rows.length > most) break
      }
      saveCsv(props.name, rows)
      return rows.length > most ? most : undefined
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
