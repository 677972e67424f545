/** A menu of actions behind one button, in a native popover: Escape and a click beside it close it. Arrow keys move between the actions. */
import { type KeyboardEvent, type ReactNode, type RefObject, useId, useRef } from 'react'
import { Button, IconButton } from './basic-components.tsx'
import { CheckIcon, DownIcon, MoreIcon } from './icons.tsx'

export interface MenuAction {
  label: string
  icon?: ReactNode
  isDanger?: boolean
  disabled?: boolean
  /** One of several values that is, or is not, the present one. */
  isChosen?: boolean
  onChoose: () => void
}

const gapPx = 4

interface MenuButtonProps {
  label: string
  isNamed: boolean
  icon: ReactNode
  to: { ref: RefObject<HTMLButtonElement | null>; popoverTarget: string }
}

const MenuButton = (props: MenuButtonProps) =>
  props.isNamed ? (
    <Button aria-haspopup="menu" {...props.to}>
      {props.label}
      <DownIcon size={14} className="text-soft" />
    </Button>
  ) : (
    <IconButton label={props.label} aria-haspopup="menu" {...props.to}>
      {props.icon ?? <MoreIcon size={16} />}
    </IconButton>
  )

interface MenuProps {
  label: string
  actions: readonly MenuAction[]
  /** The button shows the label. */
  isNamed?: boolean
  /** Of the button, in place of three dots. */
  icon?: ReactNode
}

export function Menu({ label, actions, isNamed = false, icon }: MenuProps) {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const items = () => [...(list.current?.querySelectorAll<HTMLButtonElement>('[role^=menuitem]:not(:disabled)') ?? [])]
  const place = () => {
    const [owner, layer] = [button.current?.getBoundingClientRect(), list.current]
    if (!owner || !layer?.matches(':popover-open')) return
    const { width, height } = layer.getBoundingClientRect()
    const isBelow = owner.bottom + gapPx + height <= innerHeight
    layer.style.inset = `${isBelow ? owner.bottom + gapPx : owner.top - gapPx - height}px auto auto ${Math.max(gapPx, owner.right - width)}px`
    items()[0]?.focus()
  }
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const all = items()
    all.at((all.indexOf(document.activeElement as HTMLButtonElement) + step) % all.length)?.focus()
  }
  return (
    <>
      <MenuButton label={label} isNamed={isNamed} icon={icon} to={{ ref: button, popoverTarget: id }} />
      <div
        ref={list}
        id={id}
        popover="auto"
        role="menu"
        aria-label={label}
        tabIndex={-1}
        onKeyDown={onKey}
        onToggle={place}
        className="pop fixed m-0 min-w-40 rounded-lg border border-line bg-raise p-1 text-ink shadow-raise"
      >
        {actions.map((one) => (
          <button
            key={one.label}
            type="button"
            role={one.isChosen === undefined ? 'menuitem' : 'menuitemradio'}
            {...(one.isChosen === undefined ? {} : { 'aria-checked': one.isChosen })}
            disabled={one.disabled}
            onClick={() => {
              list.current?.hidePopover()
              one.onChoose()
            }}
            className={`flex w-full items-center gap-2 rounded-md px-2.5 py-1.5 text-left text-sm hover:bg-sheet focus-visible:bg-sheet disabled:opacity-50 pointer-coarse:py-2.5 ${one.isDanger ? 'text-bad' : ''}`}
          >
            {one.icon}
            {one.label}
            {one.isChosen && <CheckIcon size={14} className="ml-auto text-soft" />}
          </button>
        ))}
      </div>
    </>
  )
}
