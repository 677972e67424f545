/** Basic components used by every page: buttons, badges, headings, and the states of a page. See DESIGN.md. */
import { type ButtonHTMLAttributes, type ReactNode, type Ref, useEffect } from 'react'
import { ApiError } from '../api-client.ts'
import type { Status } from '../api-types.ts'
import { texts } from '../texts.ts'
import { ProblemIcon, WarningIcon } from './icons.tsx'

type Kind = 'plain' | 'main' | 'danger' | 'quiet'
const kinds: Record<Kind, string> = {
  plain: 'border border-line bg-paper text-ink shadow-[0_1px_1px_rgb(0_0_0/0.04)] hover:bg-sheet hover:border-edge',
  // Disabled, it is not the blackest thing of the page.
  main: 'border border-ink bg-ink text-paper enabled:hover:opacity-85 disabled:border-line disabled:bg-line disabled:text-soft disabled:opacity-100',
  danger: 'border border-line bg-paper text-bad hover:bg-bad-back hover:border-bad',
  quiet: 'border border-transparent text-soft hover:bg-sheet hover:text-ink',
}

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: Kind
  /** For rows of a table. */
  small?: boolean
  ref?: Ref<HTMLButtonElement>
}

const size = 'min-h-8 px-3 text-sm'
const smallSize = 'min-h-7 px-2 text-xs'
const shape =
  'inline-flex items-center justify-center gap-1.5 whitespace-nowrap rounded-md font-medium transition-colors duration-100 disabled:opacity-50 pointer-coarse:min-h-9'

/** The class names of a link that looks like a button. */
export const linkAs = { main: `${shape} ${size} ${kinds.main} hover:opacity-85`, plain: `${shape} ${size} ${kinds.plain}` } as const

export function Button({ kind = 'plain', small = false, className = '', ...rest }: ButtonProps) {
  return <button type="button" {...rest} className={`${shape} ${small ? smallSize : size} ${kinds[kind]} ${className}`} />
}

/** A button with an icon only; its name is the tooltip. */
type IconButtonProps = { label: string } & Omit<ButtonProps, 'kind' | 'small'>
export const IconButton = ({ label, children, className = '', ...rest }: IconButtonProps) => (
  <button
    type="button"
    aria-label={label}
    data-tip={label}
    {...rest}
    className={`inline-flex size-7 shrink-0 items-center justify-center rounded-md text-soft transition-colors duration-100 hover:bg-sheet hover:text-ink disabled:opacity-50 pointer-coarse:size-9 ${className}`}
  >
    {children}
  </button>
)

export type Tone = 'good' | 'wait' | 'bad' | 'none'
const tones: Record<Tone, string> = {
  good: 'bg-good-back text-good',
  wait: 'bg-wait-back text-wait',
  bad: 'bg-bad-back text-bad',
  none: 'bg-sheet text-soft ring-1 ring-inset ring-line',
}

export const Badge = ({ tone, title, children }: { tone: Tone; title?: string | undefined; children: ReactNode }) => (
  <span
    {...(title ? { 'data-tip': title } : {})}
    className={`inline-block rounded-[5px] px-1.5 py-px text-xs font-medium whitespace-nowrap ${tones[tone]}`}
  >
    {children}
  </span>
)

const statusTones: Record<Status, Tone> = { pending: 'none', sent: 'good', softfail: 'wait', hardfail: 'bad', bounced: 'bad', held: 'wait' }
/** For lists: delivered mail has no colour of its own, so that the rest stands out. */
export const QuietStatus = ({ status }: { status: Status }) =>
  status === 'sent' ? (
    <span data-tip={texts.statusMeans.sent} className="inline-flex items-center gap-1.5 align-middle text-xs whitespace-nowrap text-soft">
      <span className="size-1.5 rounded-full bg-chart-good" />
      {texts.status.sent}
    </span>
  ) : (
    <StatusBadge status={status} />
  )

export const StatusBadge = ({ status }: { status: Status }) => (
  <Badge tone={statusTones[status]} title={texts.statusMeans[status]}>
    {texts.status[status]}
  </Badge>
)

export function Problem({ error }: { error: unknown }) {
  if (!error) return null
  const apiError = error instanceof ApiError ? error : undefined
  return (
    <div role="alert" className="my-3 flex gap-2.5 rounded-lg bg-bad-back p-3 text-sm text-bad">
      <ProblemIcon size={16} className="mt-0.5 shrink-0" />
      <div className="min-w-0">
        <p className="font-semibold">{error instanceof Error ? error.message : texts.problems.unknown}</p>
        {apiError && <p>{apiError.suggestion}</p>}
        {apiError?.requestId && <p className="font-mono text-xs">{apiError.requestId}</p>}
      </div>
    </div>
  )
}

/** A warning about the state of the thing that the page shows. */
export const Warning = ({ tone = 'wait', children }: { tone?: 'wait' | 'bad'; children: ReactNode }) => (
  <div role="alert" className={`mb-3 flex gap-2.5 rounded-lg p-3 text-sm ${tones[tone]}`}>
    <WarningIcon size={16} className="mt-0.5 shrink-0" />
    <div className="min-w-0">{children}</div>
  </div>
)

/** `title`: the purpose of the page; `action`: the button of the next step. */
export const Empty = ({ title, action, children }: { title?: string; action?: ReactNode; children: ReactNode }) => (
  <div className="rounded-lg border border-dashed border-line px-6 py-10 text-center text-sm text-soft">
    {title && <p className="mb-1 text-base font-semibold text-ink">{title}</p>}
    <div className="mx-auto max-w-prose">{children}</div>
    {action && <div className="mt-4 flex justify-center">{action}</div>}
  </div>
)

/** The name of a number in a card of a phone, where it has no column. */
export const OnPhone = ({ children }: { children: string }) => <span className="text-soft md:hidden"> {children.toLowerCase()}</span>

/** A sentence with commands and names in backticks, which are set as code. */
export const Coded = ({ children }: { children: string }) =>
  children.split('`').map((part, index) =>
    index % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one sentence never move
      <code key={index} className="rounded-sm bg-line/60 px-1 py-px font-mono text-[0.92em] [overflow-wrap:anywhere]">
        {part}
      </code>
    ) : (
      part
    ),
  )

const fills = { good: 'bg-chart-good', wait: 'bg-chart-wait', bad: 'bg-chart-bad', none: 'bg-edge' } as const

/** A part of a whole as a bar. Its words are beside it, so that a screen reader skips the bar. */
export const Meter = ({ part, whole, tone }: { part: number; whole: number; tone: Tone }) => (
  <span aria-hidden="true" className="inline-block h-1.5 w-20 shrink-0 overflow-hidden rounded-full bg-line align-middle">
    <span className={`block h-full rounded-full ${fills[tone]}`} style={{ width: `${whole === 0 ? 0 : (part / whole) * 100}%` }} />
  </span>
)

/** Lines in the place of content that is loading. */
export const Skeleton = ({ lines = 3 }: { lines?: number }) => (
  <div role="status" className="flex flex-col gap-3 py-2">
    <span className="sr-only">{texts.loading}</span>
    {Array.from({ length: lines }, (_, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: the lines are alike
      <div key={index} className={`skeleton h-4 ${['w-full', 'w-5/6', 'w-2/3'][index % 3]}`} />
    ))}
  </div>
)

/** The page's title in the tab and the history. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · ${texts.name}`
  }, [title])
}

/** `beside`: badges and copy buttons after the title. `about`: one sentence below it. */
export function Heading(props: { title: string; beside?: ReactNode; about?: ReactNode; children?: ReactNode }) {
  useTitle(props.title)
  return (
    <div className="mb-5 flex flex-wrap items-start justify-between gap-x-4 gap-y-3">
      <div className="min-w-0">
        <div className="flex min-h-8 flex-wrap items-center gap-2">
          <h1 className="text-xl font-semibold tracking-tight [overflow-wrap:anywhere]">{props.title}</h1>
          {props.beside}
        </div>
        {props.about && <p className="mt-0.5 max-w-3xl text-sm text-soft">{props.about}</p>}
      </div>
      <div className="flex flex-wrap items-end gap-2 max-md:has-[select]:w-full [&>span]:self-center max-md:[&>div:has(select)]:grow">
        {props.children}
      </div>
    </div>
  )
}

/** `about`: one sentence below the title. */
export const Section = (props: { title: string; about?: ReactNode; aside?: ReactNode; children: ReactNode }) => (
  <section className="mt-7">
    <div className="mb-2 flex flex-wrap items-center justify-between gap-2">
      <div className="min-w-0">
        <h2 className="text-base font-semibold">{props.title}</h2>
        {props.about && <p className="mt-0.5 text-sm text-soft">{props.about}</p>}
      </div>
      {props.aside}
    </div>
    {props.children}
  </section>
)

/** Settings in one box, divided by lines. */
export const Rows = ({ children }: { children: ReactNode }) => (
  <div className="divide-y divide-line rounded-lg border border-line text-sm">{children}</div>
)

/** One setting: its name and meaning, and the control at the side. */
export const SettingRow = (props: { title: ReactNode; children: ReactNode; control?: ReactNode }) => (
  <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-3 px-4 py-3">
    <div className="min-w-0 max-w-prose">
      <p className="flex flex-wrap items-center gap-2 font-medium">{props.title}</p>
      <div className="text-soft">{props.children}</div>
    </div>
    {props.control && <div className="flex flex-wrap items-center gap-2">{props.control}</div>}
  </div>
)
