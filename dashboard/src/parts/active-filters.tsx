/** The filters in force, each with a button that removes it, and one that removes all. */
import { texts } from '../texts.ts'
import { Button } from './basic-components.tsx'
import { CloseIcon } from './icons.tsx'

const words = texts.activeFilters

export interface ActiveFilter {
  /** The part of the address; those with the same name are removed together. */
  name: string
  label: string
  value: string
}

export function ActiveFilters(props: { filters: readonly ActiveFilter[]; onRemove: (name: string) => void; onClear: () => void }) {
  if (props.filters.length === 0) return null
  return (
    <div className="mb-3 flex flex-wrap items-center gap-1.5">
      <ul aria-label={words.label} className="contents">
        {props.filters.map(({ name, label, value }) => (
          <li key={name} className="max-w-full">
            <button
              type="button"
              aria-label={words.remove(label, value)}
              onClick={() => props.onRemove(name)}
              className="inline-flex min-h-7 max-w-full items-center gap-1.5 rounded-md border border-line bg-sheet px-2 text-xs hover:border-edge pointer-coarse:min-h-9"
            >
              <span className="truncate">
                <span className="text-soft">{label}:</span> <span className="font-medium">{value}</span>
              </span>
              <CloseIcon size={12} className="shrink-0 text-soft" />
            </button>
          </li>
        ))}
      </ul>
      <Button small kind="quiet" onClick={props.onClear}>
        {words.clear}
      </Button>
    </div>
  )
}
