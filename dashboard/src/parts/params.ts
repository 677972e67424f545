/** What stands in the address of a page. */
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'

/** Filters and page number, and how to change some of them; a change of a filter leads back to the first page. */
export function useFilters(): [Record<string, string | undefined>, (changes: Record<string, string | undefined>) => void] {
  const given = useSearch({ strict: false }) as Record<string, string | undefined>
  const navigate = useNavigate()
  const change = (changes: Record<string, string | undefined>) => {
    const next = Object.fromEntries(Object.entries({ ...given, page: undefined, ...changes }).filter(([, value]) => value))
    void navigate({ to: '.', search: next as never, replace: true })
  }
  return [given, change]
}

/** Which mail a page shows, by its address: live unless it says otherwise; and that as the API's parameter. */
export const mailOf = (given: string | undefined): 'live' | 'test' | 'all' => (given === 'test' || given === 'all' ? given : 'live')
export const testOf = (mail: 'live' | 'test' | 'all') => (mail === 'all' ? undefined : String(mail === 'test'))

export const useParam = (name: string): string => (useParams({ strict: false }) as Record<string, string | undefined>)[name] ?? ''
