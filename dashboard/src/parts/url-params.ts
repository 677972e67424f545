/** State kept in a page's address. */
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'

type Filters = Record<string, string | undefined>

/** Filters and page number, and a function to change them; a changed filter returns to the first page. */
export function useFilters(): [Filters, (changes: Filters) => void] {
  const given = useSearch({ strict: false }) as Filters
  const navigate = useNavigate()
  const change = (changes: Filters) => {
    // Of the address at that time: two changes may come before the page is drawn again.
    const next = (now: Filters) => Object.fromEntries(Object.entries({ ...now, page: undefined, ...changes }).filter(([, value]) => value))
    void navigate({ to: '.', search: next as never, replace: true })
  }
  return [given, change]
}

/** The mail shown by a page, from its address (live by default), and the matching API parameter. */
export const mailOf = (given: string | undefined): 'live' | 'test' | 'all' => (given === 'test' || given === 'all' ? given : 'live')
export const testOf = (mail: 'live' | 'test' | 'all') => (mail === 'all' ? undefined : String(mail === 'test'))

export const useParam = (name: string): string => (useParams({ strict: false }) as Record<string, string | undefined>)[name] ?? ''
