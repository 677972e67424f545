/** The facts of an email or a received message, beside its content: names, values and addresses. */
import type { ReactNode } from 'react'
import { texts } from '../texts.ts'
import { CopyIconButton } from './time-and-copy.tsx'

/** Of the grid of the content and its facts. */
export const besideFacts = 'grid gap-x-8 gap-y-8 lg:grid-cols-[minmax(0,1fr)_21rem]'

export const Facts = ({ label, children }: { label: string; children: ReactNode }) => (
  <aside aria-label={label} className="min-w-0 max-lg:border-t max-lg:border-line max-lg:pt-5 lg:border-l lg:border-line lg:pl-6">
    <dl className="grid grid-cols-[6rem_minmax(0,1fr)] gap-x-3 gap-y-2.5 text-sm [&_.font-mono]:truncate [&_button]:-my-1 [&_dd]:[overflow-wrap:anywhere] [&_dt]:text-xs [&_dt]:leading-5 [&_dt]:text-soft">
      {children}
    </dl>
  </aside>
)

export const Fact = ({ name, children }: { name: string; children: ReactNode }) => (
  <div className="contents">
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

const maxShown = 3

/** The addresses of a header; the others of a long list are folded away. */
export function Addresses({ name, value }: { name: string; value: string }) {
  const addresses = value.split(/,\s*(?=\S+@|"|\S+ <)/)
  return (
    <span className="inline-flex max-w-full items-start gap-0.5">
      <span className="min-w-0">
        {addresses.slice(0, maxShown).join(', ')}
        {addresses.length > maxShown && (
          <details>
            <summary className="w-fit text-xs text-soft hover:text-ink">{texts.email.moreAddresses(addresses.length - maxShown)}</summary>
            {addresses.slice(maxShown).join(', ')}
          </details>
        )}
      </span>
      <CopyIconButton text={value} label={texts.actions.copyOf(name)} />
    </span>
  )
}
