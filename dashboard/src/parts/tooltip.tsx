/**
 * Tooltips of all elements with `data-tip`, in one layer above the page, so that scrolling tables do not cut them off. Shown for the pointer,
 * the keyboard's focus and a tap. Escape hides them. They let clicks through.
 */
import { useEffect, useRef } from 'react'

const gapPx = 6

export function Tooltips() {
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const layer = ref.current
    if (!layer) return undefined
    let frame = 0
    const hide = () => {
      cancelAnimationFrame(frame)
      if (layer.matches(':popover-open')) layer.hidePopover()
    }
    const show = ({ type, target }: Event) => {
      const owner = target instanceof Element ? target.closest<HTMLElement>('[data-tip]') : null
      cancelAnimationFrame(frame)
      if (!owner?.dataset.tip || (type === 'focusin' && !owner.matches(':focus-visible'))) {
        hide()
        return
      }
      // The focus also moves while a menu opens, when no other popover may be shown.
      frame = requestAnimationFrame(() => {
        if (!owner.isConnected) return
        layer.textContent = owner.dataset.tip ?? ''
        if (!layer.matches(':popover-open')) layer.showPopover()
        place(layer, owner.getBoundingClientRect())
      })
    }
    const onKey = ({ key }: KeyboardEvent) => key === 'Escape' && hide()
    const onPress = ({ pointerType }: PointerEvent) => pointerType !== 'touch' && hide()
    const leaving = new AbortController()
    const { signal } = leaving
    document.addEventListener('pointerover', show, { signal })
    document.addEventListener('focusin', show, { signal })
    document.addEventListener('keydown', onKey, { signal })
    document.addEventListener('pointerdown', onPress, { signal })
    document.addEventListener('scroll', hide, { signal, capture: true })
    return () => {
      cancelAnimationFrame(frame)
      leaving.abort()
    }
  }, [])
  return (
    <div
      ref={ref}
      popover="manual"
      role="tooltip"
      className="pointer-events-none fixed m-0 max-w-xs rounded-md border-0 bg-ink px-2 py-1 text-xs whitespace-pre-line text-paper"
    />
  )
}

/** Below its owner, or above it at the end of the screen. */
function place(layer: HTMLElement, owner: DOMRect): void {
  const { width, height } = layer.getBoundingClientRect()
  const isBelow = owner.bottom + gapPx + height <= innerHeight
  const left = Math.min(Math.max(gapPx, owner.left + owner.width / 2 - width / 2), innerWidth - width - gapPx)
  layer.style.inset = `${isBelow ? owner.bottom + gapPx : owner.top - gapPx - height}px auto auto ${left}px`
}
