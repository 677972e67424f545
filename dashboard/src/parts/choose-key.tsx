/** The menu of keys as a filter, and the names of keys by their ids. */
import { useQuery } from '@tanstack/react-query'
import { getPage } from '../api-client.ts'
import type { Credential } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Select } from './form-controls.tsx'

const maxKeys = 100

/** The newest keys that the member sees; loaded when they are shown. */
export function useKeys(isShown: boolean): readonly Credential[] {
  const { ofKeys, ofAll } = useHere()
  const path = ofKeys('', { perPage: maxKeys, ...ofAll })
  const keys = useQuery({ queryKey: ['keys', path], queryFn: () => getPage<Credential>(path), enabled: isShown, staleTime: 60_000 })
  return keys.data?.items ?? []
}

export const ChooseKey = (props: { value: string; keys: readonly Credential[]; onChange: (id: string) => void }) => (
  <Select
    label={texts.emails.filters.credentialId}
    value={props.value}
    onChange={props.onChange}
    choices={[
      { value: '', label: texts.emails.any },
      ...props.keys.map(({ id, name, keyPrefix }) => ({ value: String(id), label: `${name} (${keyPrefix}…)` })),
    ]}
  />
)
