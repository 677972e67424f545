/** Basic components used by every page. */
import { type ButtonHTMLAttributes, type InputHTMLAttributes, type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { ApiError } from '../api-client.ts'
import type { Status } from '../api-types.ts'
import { texts } from '../texts.ts'

type Kind = 'plain' | 'main' | 'danger'
const kinds: Record<Kind, string> = {
  plain: 'border border-line bg-sheet text-ink hover:border-soft',
  main: 'border border-accent bg-accent text-on-accent hover:opacity-90',
  danger: 'border border-bad text-bad hover:bg-bad-back',
}

export function Button({ kind = 'plain', className = '', ...rest }: { kind?: Kind } & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button
      type="button"
      {...rest}
      className={`inline-flex min-h-9 items-center justify-center gap-2 whitespace-nowrap rounded-md px-3 text-sm font-medium disabled:opacity-50 ${kinds[kind]} ${className}`}
    />
  )
}

const control = 'min-h-9 w-full rounded-md border border-line bg-paper px-2.5 py-1.5 text-sm text-ink placeholder:text-soft'

type FieldProps = { label: string; help?: string; beside?: ReactNode } & InputHTMLAttributes<HTMLInputElement>

export function Field({ label, help, beside, ...rest }: FieldProps) {
  const id = useId()
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      <div className="flex gap-2">
        <input id={id} {...rest} {...(help ? { 'aria-describedby': `${id}-help` } : {})} className={control} />
        {beside}
      </div>
      {help && (
        <p id={`${id}-help`} className="text-sm text-soft">
          {help}
        </p>
      )}
    </div>
  )
}

/** With a button that shows the password. */
export function PasswordField(props: { label: string } & InputHTMLAttributes<HTMLInputElement>) {
  const [shown, setShown] = useState(false)
  const show = <Button onClick={() => setShown(!shown)}>{shown ? texts.hide : texts.show}</Button>
  // In a text field, browsers would send the input to a spelling service, and phones would capitalise its first letter.
  const asItIs = { spellCheck: false, autoCapitalize: 'none', autoCorrect: 'off' }
  return <Field {...props} {...asItIs} type={shown ? 'text' : 'password'} beside={show} />
}

interface Choice {
  value: string
  label: string
}

export function Select(props: { label: string; value: string; choices: readonly Choice[]; onChange: (value: string) => void }) {
  const id = useId()
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        {props.label}
      </label>
      <select id={id} value={props.value} onChange={(event) => props.onChange(event.target.value)} className={control}>
        {props.choices.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </div>
  )
}

type Tone = 'good' | 'wait' | 'bad' | 'none'
const tones: Record<Tone, string> = {
  good: 'bg-good-back text-good',
  wait: 'bg-wait-back text-wait',
  bad: 'bg-bad-back text-bad',
  none: 'bg-sheet text-soft border border-line',
}

export const Badge = ({ tone, title, children }: { tone: Tone; title?: string; children: ReactNode }) => (
  <span title={title} className={`inline-block rounded px-1.5 py-0.5 text-xs font-semibold whitespace-nowrap ${tones[tone]}`}>
    {children}
  </span>
)

const statusTones: Record<Status, Tone> = { pending: 'none', sent: 'good', softfail: 'wait', hardfail: 'bad', bounced: 'bad', held: 'wait' }
export const StatusBadge = ({ status }: { status: Status }) => (
  <Badge tone={statusTones[status]} title={texts.statusMeans[status]}>
    {texts.status[status]}
  </Badge>
)

/** In the reader's time zone, with the exact instant as a tooltip. */
export function Time({ at }: { at: string }) {
  const shown = new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
  return (
    <time dateTime={at} title={at} className="whitespace-nowrap tabular-nums">
      {shown}
    </time>
  )
}

const instant = /(\d{4}-\d\d-\d\dT[\d:.]+Z)/

/** A sentence from the service, with its times formatted like the page's. */
export const Sentence = ({ children }: { children: string }) =>
  // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one sentence never move
  children.split(instant).map((part, index) => (instant.test(part) ? <Time key={index} at={part} /> : part))

export function Copy({ text, label = texts.actions.copy }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return undefined
    const timer = setTimeout(() => setCopied(false), 2000)
    return () => clearTimeout(timer)
  }, [copied])
  const copy = () =>
    void navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => undefined,
    )
  return (
    <Button onClick={copy} aria-live="polite">
      {copied ? texts.actions.copied : label}
    </Button>
  )
}

export const Code = ({ children }: { children: string }) => (
  <code className="block rounded-md border border-line bg-sheet px-2.5 py-1.5 font-mono text-xs break-all select-all">{children}</code>
)

/** Preformatted text; focusable by keyboard because it may scroll. */
export const Pre = ({ label, children }: { label: string; children: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable
  <section aria-label={label} tabIndex={0} className="max-h-[36rem] overflow-auto rounded-md border border-line bg-sheet p-3">
    <pre className="font-mono text-xs whitespace-pre-wrap [overflow-wrap:anywhere]">{children}</pre>
  </section>
)

export function Problem({ error }: { error: unknown }) {
  if (!error) return null
  const told = error instanceof ApiError ? error : undefined
  return (
    <div role="alert" className="rounded-md bg-bad-back p-3 text-sm text-bad">
      <p className="font-semibold">{error instanceof Error ? error.message : texts.problems.unknown}</p>
      {told && <p>{told.suggestion}</p>}
      {told?.requestId && <p className="font-mono text-xs">{told.requestId}</p>}
    </div>
  )
}

export const Empty = ({ children }: { children: ReactNode }) => (
  <p className="rounded-md border border-dashed border-line p-6 text-center text-sm text-soft">{children}</p>
)

/** The page's title in the tab and the history. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · ${texts.name}`
  }, [title])
}

export function Heading({ title, children }: { title: string; children?: ReactNode }) {
  useTitle(title)
  return (
    <div className="mb-4 flex flex-wrap items-center justify-between gap-3">
      <h1 className="text-xl font-semibold [overflow-wrap:anywhere]">{title}</h1>
      <div className="flex flex-wrap items-end gap-2 [&>span]:self-center">{children}</div>
    </div>
  )
}

export const Section = ({ title, children }: { title: string; children: ReactNode }) => (
  <section className="mt-6">
    <h2 className="mb-2 text-base font-semibold">{title}</h2>
    {children}
  </section>
)

/** A table that scrolls horizontally on a narrow screen. */
export function Table({ label, columns, children }: { label: string; columns: readonly string[]; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable
    <section aria-label={label} tabIndex={0} className="overflow-x-auto rounded-md border border-line">
      <table className="w-full text-left text-sm">
        <thead className="bg-sheet text-soft">
          <tr>
            {columns.map((name) => (
              <th key={name} scope="col" className="px-3 py-2 font-medium whitespace-nowrap">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line [&_td]:px-3 [&_td]:py-2 [&_td]:align-top">{children}</tbody>
      </table>
    </section>
  )
}

/** `isAtLeast`: counting stopped at `total`. */
export function Pager(props: { page: number; totalPages: number; total: number; isAtLeast?: boolean; onPage: (page: number) => void }) {
  if (props.total === 0) return null
  return (
    <nav aria-label={texts.pager.label} className="mt-3 flex flex-wrap items-center justify-between gap-2 text-sm text-soft">
      <span>{texts.pager.where(props.total.toLocaleString(), props.isAtLeast ?? false, props.page, Math.max(1, props.totalPages))}</span>
      <span className="flex gap-2">
        <Button disabled={props.page <= 1} onClick={() => props.onPage(props.page - 1)}>
          {texts.pager.newer}
        </Button>
        <Button disabled={props.page >= props.totalPages} onClick={() => props.onPage(props.page + 1)}>
          {texts.pager.older}
        </Button>
      </span>
    </nav>
  )
}

/** The browser's native dialog: keeps the focus inside, closes with Escape, and returns the focus. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }) {
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
      className="m-auto w-[min(36rem,calc(100vw-2rem))] rounded-lg border border-line bg-paper p-5 backdrop:bg-[rgb(0_0_0/0.5)]"
    >
      <h2 id={id} className="mb-3 text-lg font-semibold">
        {title}
      </h2>
      {children}
    </dialog>
  )
}
