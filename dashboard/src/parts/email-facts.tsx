/** The addresses, ids and metadata of an email, each with a copy button. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { get } from '../api-client.ts'
import type { Email, EmailMoreResponse } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { MadeBy } from './email-related.tsx'
import { CopyIconButton, Time, Value } from './time-and-copy.tsx'

const words = texts.email
/** Header fields with further addresses, in the order of their display. */
const addressFields = ['To', 'Cc', 'Reply-To'] as const

export function EmailFacts({ email, more }: { email: Email; more: EmailMoreResponse | undefined }) {
  const { nameOf, tenants } = useHere()
  const { data } = useQuery({
    queryKey: ['email', email.id, 'headers'],
    queryFn: () => get<Email>(`/v1/emails/${email.id}?expand=headers`),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const headerOf = (name: string) => Object.entries(data?.headers ?? {}).find(([field]) => field.toLowerCase() === name.toLowerCase())?.[1]
  return (
    <aside aria-label={words.facts} className="min-w-0 lg:mt-0">
      <dl className="grid grid-cols-[6rem_minmax(0,1fr)] gap-x-3 gap-y-2 text-sm lg:grid-cols-1 lg:gap-y-0 [&_dd]:mb-0 [&_dd]:[overflow-wrap:anywhere] lg:[&_dd]:mb-2.5 [&_dt]:text-xs [&_dt]:leading-5 [&_dt]:text-soft">
        <Fact name={words.sender}>
          <Address name={words.sender} value={email.from} />
        </Fact>
        {addressFields.map((field) => {
          const value = headerOf(field)
          return value === undefined || value === email.to ? null : (
            <Fact key={field} name={field}>
              <Address name={field} value={value} />
            </Fact>
          )
        })}
        <Times email={email} />
        {tenants.length > 1 && <Fact name={texts.shell.tenant}>{nameOf(email.tenantId)}</Fact>}
        {email.tag && (
          <Fact name={words.tag}>
            <Link to="/emails" search={{ tag: email.tag }} className="link">
              {email.tag}
            </Link>
          </Fact>
        )}
        {Object.entries(email.metadata ?? {}).map(([name, value]) => (
          <Fact key={name} name={words.metadata(name)}>
            <Link to="/emails" search={{ metadata: `${name}:${value}` }} className="link">
              {value}
            </Link>
          </Fact>
        ))}
        <Fact name={words.id}>
          <Value name={words.id}>{email.id}</Value>
        </Fact>
        <Fact name={words.messageId}>
          <Value name={words.messageId}>{email.messageId}</Value>
        </Fact>
        {more && (
          <Fact name={words.request}>
            <MadeBy request={more.request} />
          </Fact>
        )}
      </dl>
    </aside>
  )
}

const Fact = ({ name, children }: { name: string; children: ReactNode }) => (
  <div className="contents">
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

const Times = ({ email: { timestampIso, scheduledAt, cancelledAt } }: { email: Email }) => (
  <>
    <Fact name={words.acceptedAt}>
      <Time at={timestampIso} />
    </Fact>
    {scheduledAt && (
      <Fact name={words.scheduledAt}>
        <Time at={scheduledAt} exact />
      </Fact>
    )}
    {cancelledAt && (
      <Fact name={words.cancelledAt}>
        <Time at={cancelledAt} />
      </Fact>
    )}
  </>
)

const maxShown = 3

/** The addresses of a header; the others of a long list are folded away. */
function Address({ name, value }: { name: string; value: string }) {
  const addresses = value.split(/,\s*(?=\S+@|"|\S+ <)/)
  return (
    <span className="inline-flex max-w-full items-start gap-0.5">
      <span className="min-w-0 py-1">
        {addresses.slice(0, maxShown).join(', ')}
        {addresses.length > maxShown && (
          <details>
            <summary className="text-xs text-accent">{words.moreAddresses(addresses.length - maxShown)}</summary>
            {addresses.slice(maxShown).join(', ')}
          </details>
        )}
      </span>
      <CopyIconButton text={value} label={texts.actions.copyOf(name)} />
    </span>
  )
}
