/** The test emails that were opened in this browser. */
import { useSyncExternalStore } from 'react'

const key = 'read-test-mail'
const max = 500
const listeners = new Set<() => void>()

/** Their ids, separated by spaces. */
const stored = () => localStorage.getItem(key) ?? ''
const idsIn = (text: string) => text.split(' ').filter((id) => id !== '')

export function markRead(id: string): void {
  const ids = idsIn(stored())
  if (ids.includes(id)) return
  localStorage.setItem(key, [...ids, id].slice(-max).join(' '))
  for (const one of listeners) one()
}

/** A change in another tab arrives as an event of the browser. */
const listen = (listener: () => void) => {
  listeners.add(listener)
  addEventListener('storage', listener)
  return () => {
    listeners.delete(listener)
    removeEventListener('storage', listener)
  }
}

export function useReadMail(): ReadonlySet<string> {
  return new Set(idsIn(useSyncExternalStore(listen, stored)))
}
