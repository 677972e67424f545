/** Tabs (ARIA authoring practices): arrow keys move and select, Tab enters the panel. */
import { type KeyboardEvent, type ReactNode, useId } from 'react'

export function Tabs<Name extends string>(props: {
  label: string
  tabs: readonly { name: Name; label: string; count?: number | undefined }[]
  chosen: Name
  onChoose: (name: Name) => void
  aside?: ReactNode
  children: ReactNode
}) {
  const id = useId()
  const onKey = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    const tabs = [...event.currentTarget.querySelectorAll<HTMLButtonElement>('[role=tab]')]
    const index = tabs.indexOf(document.activeElement as HTMLButtonElement)
    if (step === undefined || index < 0) return
    event.preventDefault()
    const next = tabs.at((index + step) % tabs.length)
    next?.focus()
    next?.click()
  }
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center justify-between gap-2 border-b border-line">
        <div
          role="tablist"
          aria-label={props.label}
          onKeyDown={onKey}
          className="-mb-px flex max-w-full gap-4 overflow-x-auto overflow-y-hidden max-md:[mask-image:linear-gradient(to_right,#000_calc(100%-2rem),transparent)] max-md:pr-8"
        >
          {props.tabs.map(({ name, label, count }) => (
            <button
              key={name}
              type="button"
              role="tab"
              id={`${id}-${name}`}
              aria-selected={name === props.chosen}
              aria-controls={`${id}-panel`}
              tabIndex={name === props.chosen ? 0 : -1}
              onClick={() => props.onChoose(name)}
              className="border-b-2 border-transparent py-2 text-sm whitespace-nowrap text-soft hover:text-ink aria-selected:border-ink aria-selected:font-medium aria-selected:text-ink"
            >
              {label}
              {count !== undefined && count > 0 && (
                <>
                  {' '}
                  <span className="ml-0.5 rounded-full bg-line px-1.5 text-xs text-soft tabular-nums">{count.toLocaleString()}</span>
                </>
              )}
            </button>
          ))}
        </div>
        {props.aside}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${props.chosen}`}>
        {props.children}
      </div>
    </>
  )
}
