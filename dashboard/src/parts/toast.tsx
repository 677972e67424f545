/** Short messages about an action that has ended, in a live region of the frame. */
import { useSyncExternalStore } from 'react'
import { CheckIcon, ProblemIcon } from './icons.tsx'

interface Message {
  id: number
  text: string
  isProblem: boolean
}

const shownForMs = 6000
const listeners = new Set<() => void>()
let messages: readonly Message[] = []
let lastId = 0

function set(next: readonly Message[]): void {
  messages = next
  for (const one of listeners) one()
}

function show(text: string, isProblem: boolean): void {
  const id = ++lastId
  set([...messages.slice(-2), { id, text, isProblem }])
  setTimeout(() => set(messages.filter((one) => one.id !== id)), shownForMs)
}

export const toast = (text: string): void => show(text, false)
export const toastProblem = (error: unknown): void => show(error instanceof Error ? error.message : String(error), true)

/** Copies a text, and reports it with `message`. */
export const copyText = (text: string, message: string): Promise<void> =>
  navigator.clipboard.writeText(text).then(
    () => toast(message),
    () => undefined,
  )

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => messages)
  return (
    <div role="status" className="pointer-events-none fixed inset-x-4 bottom-4 z-50 flex flex-col items-end gap-2">
      {shown.map(({ id, text, isProblem }) => (
        <p
          key={id}
          className="pop pointer-events-auto flex max-w-md items-center gap-2 rounded-lg border border-line bg-raise px-3.5 py-2.5 text-sm shadow-raise"
        >
          {isProblem ? <ProblemIcon size={16} className="shrink-0 text-bad" /> : <CheckIcon size={16} className="shrink-0 text-good" />}
          {text}
        </p>
      ))}
    </div>
  )
}
