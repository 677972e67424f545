/** The width, the colours and the height of an email's preview. The frame itself is the caller's. */
import { type CSSProperties, type ReactNode, useState } from 'react'
import { texts } from '../texts.ts'
import { Button } from './basic-components.tsx'

const words = texts.content
const widths = { full: 'w-full', tablet: 'w-[768px] max-w-full', phone: 'w-[375px] max-w-full' } as const
type Width = keyof typeof widths
/** `page`: to the bottom of the window; `editor`: to the end of the source beside it. */
const heights = { low: 'h-60', page: 'h-[max(18rem,calc(100dvh-21.5rem))]', editor: 'h-72 xl:h-[26.25rem]' } as const

/** Of the frame, as its style and class. */
export interface FrameLook {
  style: CSSProperties
  className: string
}

interface PreviewFrameProps {
  note?: ReactNode
  height?: keyof typeof heights
  children: (look: FrameLook) => ReactNode
}

/** A message of a few lines needs a low frame; its height is unknown, because the page cannot look into the frame. */
export function PreviewFrame({ note, height = 'low', children }: PreviewFrameProps) {
  const [width, setWidth] = useState<Width>('full')
  const [isDark, setDark] = useState(false)
  const [isLarge, setLarge] = useState(false)
  return (
    <>
      <div className="mb-2 flex flex-wrap items-center gap-x-2 gap-y-1 text-xs text-soft">
        <span role="group" aria-label={words.width} className="flex gap-0.5 rounded-lg border border-line p-0.5">
          {(Object.keys(widths) as Width[]).map((name) => (
            <Button
              key={name}
              small
              kind="quiet"
              aria-pressed={name === width}
              className="aria-pressed:bg-line/70 aria-pressed:text-ink pointer-fine:min-h-6"
              onClick={() => setWidth(name)}
            >
              {words.widths[name]}
            </Button>
          ))}
        </span>
        <Button small kind="quiet" aria-pressed={isDark} onClick={() => setDark(!isDark)}>
          {isDark ? words.onLight : words.onDark}
        </Button>
        <Button small kind="quiet" aria-pressed={isLarge} onClick={() => setLarge(!isLarge)}>
          {isLarge ? words.smaller : words.larger}
        </Button>
        {note && <span className="md:ml-auto">{note}</span>}
      </div>
      {children({
        style: { colorScheme: isDark ? 'dark' : 'light', background: isDark ? '#111' : '#fff' },
        className: `${isLarge ? 'h-[44rem]' : heights[height]} rounded-md border border-line ${widths[width]}`,
      })}
    </>
  )
}
