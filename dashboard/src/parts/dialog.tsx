/** The browser's native dialog: keeps the focus inside, closes with Escape, and returns the focus. */
import { type ReactNode, useEffect, useId, useRef } from 'react'
import { texts } from '../texts.ts'
import { IconButton } from './basic-components.tsx'
import { CloseIcon } from './icons.tsx'

export function Dialog({
  title,
  wide = false,
  onClose,
  children,
}: {
  title: string
  wide?: boolean
  onClose: () => void
  children: ReactNode
}) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    if (!ref.current?.open) ref.current?.showModal()
  }, [])
  return (
    <dialog
      ref={ref}
      aria-labelledby={id}
      onClose={onClose}
      className={`pop m-auto max-h-[calc(100dvh-2rem)] rounded-xl border border-line bg-raise p-5 shadow-raise backdrop:bg-[rgb(0_0_0/0.45)] ${wide ? 'w-[min(60rem,calc(100vw-2rem))]' : 'w-[min(32rem,calc(100vw-2rem))]'}`}
    >
      <div className="mb-4 flex items-start justify-between gap-3">
        <h2 id={id} className="text-lg font-semibold tracking-tight [overflow-wrap:anywhere]">
          {title}
        </h2>
        <IconButton label={texts.dialog.dismiss} className="-mt-0.5 -mr-1.5" onClick={() => ref.current?.close()}>
          <CloseIcon size={16} />
        </IconButton>
      </div>
      {children}
    </dialog>
  )
}
