/** The filters of the audit log: an area, a person or key, and a time. */
import { useQuery } from '@tanstack/react-query'
import { get } from '../api-client.ts'
import type { MembersResponse, ShownAuditEntry } from '../api-types.ts'
import { texts } from '../texts.ts'
import { useKeys } from './choose-key.tsx'
import { Field, Select } from './form-controls.tsx'
import { ChooseRange, isCustom } from './time-range.tsx'

const words = texts.audit
type Filters = Record<string, string | undefined>

const areas: Readonly<Record<string, string>> = words.areas
/** In words; undefined: a text of another filter, or of an address that a person wrote. */
export const areaOf = (name: string, value: string) => (name === 'action' && Object.hasOwn(areas, value) ? areas[value] : undefined)

/** The names that the filter offers: members, keys, and the actors that the page lists, such as users of commands. */
function useActors(entries: readonly ShownAuditEntry[], present: string | undefined): readonly string[] {
  const { data } = useQuery({ queryKey: ['members'], queryFn: () => get<MembersResponse>('/dashboard/api/members') })
  const keys = useKeys(true)
  const names = [
    ...(data?.members ?? []).map(({ address }) => address),
    ...keys.map(({ name }) => name),
    ...entries.map(({ actor }) => actor.name),
    ...(present ? [present] : []),
  ]
  return [...new Set(names)].toSorted((a, b) => a.localeCompare(b))
}

interface ChooseEntriesProps {
  filters: Filters
  change: (changes: Filters) => void
  entries: readonly ShownAuditEntry[]
}

export function ChooseEntries({ filters, change, entries }: ChooseEntriesProps) {
  const actors = useActors(entries, filters.actor)
  const { action = '' } = filters
  // A bookmark may name another beginning.
  const others = action === '' || Object.hasOwn(areas, action) ? [] : [{ value: action, label: action }]
  return (
    <search className="mb-4 grid grid-cols-2 items-end gap-3 md:max-w-3xl md:grid-cols-3">
      <Select
        bare
        label={words.area}
        value={action}
        choices={[{ value: '', label: words.anyArea }, ...Object.entries(areas).map(([value, label]) => ({ value, label })), ...others]}
        onChange={(next) => change({ action: next })}
      />
      <Select
        bare
        label={words.who}
        value={filters.actor ?? ''}
        choices={[{ value: '', label: words.anyActor }, ...actors.map((value) => ({ value, label: value }))]}
        onChange={(actor) => change({ actor })}
      />
      <ChooseRange bare label={words.within} filters={filters} onChange={change} />
      {isCustom(filters) &&
        (['after', 'before'] as const).map((name) => (
          <Field
            key={name}
            label={words.filters[name]}
            type="datetime-local"
            value={filters[name] ?? ''}
            onChange={({ target }) => change({ [name]: target.value })}
          />
        ))}
    </search>
  )
}
