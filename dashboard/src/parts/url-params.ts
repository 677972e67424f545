/** State kept in a page's address. */
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useState } from 'react'

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

type Texts<Name extends string> = Readonly<Record<Name, string>>

/** The texts of fields that are submitted together. A field takes the address's value when that value changes, and all do when `resets` changes; the others keep theirs. */
export function useTyped<Name extends string>(inAddress: Texts<Name>, resets = 0): [Texts<Name>, (name: Name, text: string) => void] {
  const [{ seen, typed, known }, setState] = useState({ seen: inAddress, typed: inAddress, known: resets })
  const changed = (Object.keys(inAddress) as Name[]).filter((name) => resets !== known || inAddress[name] !== seen[name])
  if (changed.length > 0) {
    const taken = Object.fromEntries(changed.map((name) => [name, inAddress[name]]))
    setState({ seen: inAddress, typed: { ...typed, ...taken }, known: resets })
  }
  return [typed, (name, text) => setState((now) => ({ ...now, typed: { ...now.typed, [name]: text } }))]
}

/** The mail shown by a page, from its address (live by default), and the matching API parameter. */
export const mailOf = (given: string | undefined): 'live' | 'test' | 'all' => (given === 'test' || given === 'all' ? given : 'live')
export const testOf = (mail: 'live' | 'test' | 'all') => (mail === 'all' ? undefined : String(mail === 'test'))

export const useParam = (name: string): string => (useParams({ strict: false }) as Record<string, string | undefined>)[name] ?? ''
