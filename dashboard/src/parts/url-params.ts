/** State kept in a page's address. */
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'

/** Filters and page number, and a function to change them; a changed filter returns to the first page. */
export function useFilters(): [Record<string, string | undefined>, (changes: Record<string, string | undefined>) => void] {
  const given = useSearch({ strict: false }) as Record<string, string | undefined>
  const navigate = useNavigate()
  const change = (changes: Record<string, string | undefined>) => {
    const next = Object.fromEntries(Object.entries({ ...given, page: undefined, ...changes }).filter(([, value]) => value))
    void navigate({ to: '.', search: next as never, replace: true })
  }
  return [given, change]
}

/** The mail shown by a page, from its address (live by default), and the matching API parameter. */
export const mailOf = (given: string | undefined): 'live' | 'test' | 'all' => (given === 'test' || given === 'all' ? given : 'live')
export const testOf = (mail: 'live' | 'test' | 'all') => (mail === 'all' ? undefined : String(mail === 'test'))

export const useParam = (name: string): string => (useParams({ strict: false }) as Record<string, string | undefined>)[name] ?? ''
