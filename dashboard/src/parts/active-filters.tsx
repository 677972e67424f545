/** The filters in force, each with a button that removes it, and one that removes all. */
import { texts } from '../texts.ts'
import { Button } from './basic-components.tsx'
import { useKeys } from './choose-key.tsx'
import { CloseIcon } from './icons.tsx'
import { rangeName } from './time-range.tsx'

const words = texts.activeFilters
type Filters = Record<string, string | undefined>

interface ActiveFiltersProps<Name extends string> {
  /** The filters of the page, in the order of the row. */
  labels: Readonly<Record<Name, string>>
  names: readonly Name[]
  filters: Filters
  change: (changes: Filters) => void
  /** Called when all are removed. */
  onClear?: () => void
  /** The value in words; undefined: as it is. Times and keys have theirs. */
  valueOf: (name: Name, value: string) => string | undefined
}

/** A key is named once the keys are loaded. */
export function ActiveFilters<Name extends string>({ labels, names, filters, change, onClear, valueOf }: ActiveFiltersProps<Name>) {
  const keys = useKeys(Boolean(filters.credentialId))
  const inWords = (name: Name, value: string): string | undefined => {
    if (name === 'within') return rangeName(value)
    if (name === 'after' || name === 'before') return value.replace('T', ' ')
    if (name === 'credentialId') return keys.find(({ id }) => String(id) === value)?.name ?? value
    return valueOf(name, value) ?? value
  }
  const active = names.flatMap((name) => {
    const value = filters[name] ? inWords(name, filters[name]) : undefined
    return value === undefined ? [] : [{ name, label: labels[name], value }]
  })
  if (active.length === 0) return null
  const clear = () => {
    change(Object.fromEntries(names.map((name) => [name, undefined])))
    onClear?.()
  }
  return (
    <div className="mb-3 flex flex-wrap items-center gap-1.5">
      <ul aria-label={words.label} className="contents">
        {active.map(({ name, label, value }) => (
          <li key={name} className="max-w-full">
            <button
              type="button"
              aria-label={words.remove(label, value)}
              onClick={() => change({ [name]: undefined })}
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
      <Button small kind="quiet" onClick={clear}>
        {words.clear}
      </Button>
    </div>
  )
}
