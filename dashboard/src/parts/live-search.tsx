/** A search box that acts while one types. */
import { useEffect, useRef, useState } from 'react'
import { Field } from './form-controls.tsx'

/** Without a keystroke. */
const quietMs = 300

interface LiveSearchProps {
  label: string
  example: string
  /** The text that is searched now. It may change elsewhere, by a link. */
  text: string
  onSearch: (text: string) => void
}

export function LiveSearch({ label, example, text, onSearch }: LiveSearchProps) {
  const [typed, setTyped] = useState(text)
  const sent = useRef(text)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => {
    if (text !== sent.current) setTyped(text)
    sent.current = text
  }, [text])
  useEffect(() => () => clearTimeout(timer.current), [])
  const change = (next: string) => {
    setTyped(next)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      sent.current = next.trim()
      onSearch(sent.current)
    }, quietMs)
  }
  return (
    <search className="block min-w-0 grow md:max-w-sm">
      <Field bare type="search" label={label} placeholder={example} value={typed} onChange={({ target }) => change(target.value)} />
    </search>
  )
}
