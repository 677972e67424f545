/** The keyboard of every page: j and k move between rows, x selects one, / finds the first filter, ? shows the list, Ctrl-K opens the search. */
import { useEffect } from 'react'

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) && !isCheckbox(target)
const isCheckbox = (target: HTMLElement) => target instanceof HTMLInputElement && target.type === 'checkbox'

const rowLinks = () => [...document.querySelectorAll<HTMLElement>('#content [data-row-link]')]

/** The row that has the focus, or whose control has it. */
const currentRow = () => document.activeElement?.closest('tr, li')

function step(by: 1 | -1): void {
  const links = rowLinks()
  const row = currentRow()
  const index = links.findIndex((link) => link === document.activeElement || (row && link.closest('tr, li') === row))
  const next = index < 0 ? links[0] : links[Math.min(links.length - 1, Math.max(0, index + by))]
  next?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}

interface Opening {
  onSearch: () => void
  onHelp: () => void
}

export function useShortcuts({ onSearch, onHelp }: Opening): void {
  useEffect(() => {
    const plain: Record<string, () => void> = {
      j: () => step(1),
      k: () => step(-1),
      x: () => currentRow()?.querySelector<HTMLElement>('input[type=checkbox]')?.click(),
      '/': () => {
        const field = document.querySelector<HTMLElement>('#content search input')
        if (field) field.focus()
        else onSearch()
      },
      '?': onHelp,
    }
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        onSearch()
        return
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector('dialog[open]')) return
      const action = plain[event.key]
      if (!action) return
      event.preventDefault()
      action()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [onSearch, onHelp])
}
