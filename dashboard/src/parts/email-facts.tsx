/** The addresses, ids and metadata of an email, each with a copy button. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { get } from '../api-client.ts'
import type { Email, EmailMoreResponse } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { MadeBy } from './email-related.tsx'
import { Addresses, Fact, Facts } from './facts.tsx'
import { Time, Value } from './time-and-copy.tsx'

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
    <Facts label={words.facts}>
      <Fact name={words.sender}>
        <Addresses name={words.sender} value={email.from} />
      </Fact>
      {addressFields.map((field) => {
        // Without a header of its own, the message has this one recipient.
        const value = headerOf(field) ?? (field === 'To' ? email.to : undefined)
        return value === undefined ? null : (
          <Fact key={field} name={field}>
            <Addresses name={field} value={value} />
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
    </Facts>
  )
}

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
