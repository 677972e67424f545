/** One email: where it is and why, what was tried, what it says, who looked at it, and what can be done. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { get, post } from '../api.ts'
import { Badge, Button, Copy, Empty, Heading, Problem, Section, StatusBadge, Time } from '../parts/basics.tsx'
import { EmailContent } from '../parts/email-content.tsx'
import { BackTo, Waiting } from '../parts/listing.tsx'
import { useParam } from '../parts/params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import type { Attempt, EmailDetails, Hit } from '../types.ts'

const everyMs = 3000
const retryable = ['softfail', 'hardfail', 'bounced', 'held']

export function EmailPage() {
  const id = useParam('emailId')
  const { mayChange, member } = useHere()
  const client = useQueryClient()
  const key = ['email', id]
  const { data: email, error } = useQuery({
    queryKey: key,
    queryFn: () => get<EmailDetails>(`/v1/emails/${id}?expand=deliveries,activity`),
    refetchInterval: everyMs,
  })
  const refresh = () => client.invalidateQueries({ queryKey: key })
  const retry = useMutation({ mutationFn: () => post(`/v1/emails/${id}/retry`), onSuccess: refresh })
  const suppress = useMutation({
    mutationFn: (one: EmailDetails) =>
      post('/v1/suppressions', { address: one.to, reason: `by ${member.address}`, tenantId: one.tenantId }),
  })
  if (!email) return <Waiting error={error} />
  const { explanation } = email
  return (
    <>
      <BackTo to="/emails">{texts.pages.emails}</BackTo>
      <Heading title={email.to}>
        {mayChange && retryable.includes(email.status) && (
          <Button kind="main" disabled={retry.isPending} onClick={() => retry.mutate()}>
            Retry now
          </Button>
        )}
        {mayChange && (
          <Button disabled={suppress.isPending || suppress.isSuccess} onClick={() => suppress.mutate(email)}>
            {suppress.isSuccess ? 'Suppressed' : 'Suppress recipient'}
          </Button>
        )}
        <Copy label="Copy as curl" text={curlFor(email)} />
      </Heading>
      <Problem error={retry.error ?? suppress.error ?? error} />
      <div className="rounded-md border border-line bg-sheet p-4">
        <p className="flex flex-wrap items-center gap-2">
          <StatusBadge status={email.status} /> {email.test && <Badge tone="none">Test</Badge>}
          <span>{explanation.now}</span>
        </p>
        {explanation.cause && <p className="mt-2 text-sm">{explanation.cause}</p>}
        <p className="mt-2 text-sm text-soft">
          {explanation.next} {explanation.nextAt && <Time at={explanation.nextAt} />}
        </p>
      </div>
      <dl className="mt-4 grid gap-x-4 gap-y-1 text-sm md:grid-cols-[8rem_1fr] [&_dd]:mb-2 [&_dd]:[overflow-wrap:anywhere] md:[&_dd]:mb-0 [&_dt]:text-soft">
        <dt>Subject</dt>
        <dd>{email.subject || '(no subject)'}</dd>
        <dt>From</dt>
        <dd>{email.from}</dd>
        <dt>Accepted</dt>
        <dd>
          <Time at={email.timestampIso} />
        </dd>
        {email.tag && (
          <>
            <dt>Tag</dt>
            <dd>
              <Link to="/emails" search={{ tag: email.tag }} className="text-accent underline">
                {email.tag}
              </Link>
            </dd>
          </>
        )}
        <dt>Id</dt>
        <dd className="font-mono text-xs">{email.id}</dd>
        <dt>Message-ID</dt>
        <dd className="font-mono text-xs">{email.messageId}</dd>
        {Object.entries(email.metadata ?? {}).map(([name, value]) => (
          <div key={name} className="contents">
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Timeline email={email} />
      <EmailContent id={email.id} />
      <Activity opens={email.activity?.opens ?? []} clicks={email.activity?.clicks ?? []} />
    </>
  )
}

/** Asks for this email again; the key stays a placeholder. */
const curlFor = ({ id }: EmailDetails) => `curl '${location.origin}/v1/emails/${id}?expand=full' -H "Authorization: Bearer $POSTRIDER_KEY"`

function Timeline({ email }: { email: EmailDetails }) {
  const attempts = [...(email.deliveries ?? [])].sort((a, b) => a.timestampIso.localeCompare(b.timestampIso))
  return (
    <Section title="Timeline">
      <ol className="border-l-2 border-line pl-4">
        <li className="mb-4 text-sm">
          <span className="font-medium">Accepted</span>{' '}
          <span className="text-soft">
            <Time at={email.timestampIso} />
          </span>
        </li>
        {attempts.map((attempt, index) => (
          <OneAttempt key={attempt.id} attempt={attempt} number={index + 1} />
        ))}
      </ol>
      {attempts.length === 0 && <p className="text-sm text-soft">Nothing has been tried yet.</p>}
    </Section>
  )
}

function OneAttempt({ attempt, number }: { attempt: Attempt; number: number }) {
  const { remoteHost, sentWithSsl, classification, smtpEnhancedCode, outcomeUnknown } = attempt
  return (
    <li className="mb-4 text-sm">
      <p className="flex flex-wrap items-center gap-2">
        <StatusBadge status={attempt.status} />
        <span className="font-medium">{number}. attempt</span>
        <span className="text-soft">
          <Time at={attempt.timestampIso} />
        </span>
        {outcomeUnknown && <Badge tone="wait">Outcome unknown</Badge>}
      </p>
      <p className="mt-1 [overflow-wrap:anywhere]">{attempt.details}</p>
      <p className="mt-1 flex flex-wrap gap-2">
        {remoteHost && <Badge tone="none">{remoteHost}</Badge>}
        {remoteHost && <Badge tone={sentWithSsl ? 'good' : 'wait'}>{sentWithSsl ? 'TLS' : 'no TLS'}</Badge>}
        {smtpEnhancedCode && <Badge tone="none">{smtpEnhancedCode}</Badge>}
        {classification && <Badge tone="none">{classification.replaceAll('_', ' ')}</Badge>}
      </p>
      {attempt.output && (
        <details className="mt-1">
          <summary className="text-accent">Reply of the server</summary>
          <pre className="mt-1 rounded-md border border-line bg-sheet p-2 font-mono text-xs whitespace-pre-wrap [overflow-wrap:anywhere]">
            {attempt.output}
          </pre>
        </details>
      )}
    </li>
  )
}

function Activity({ opens, clicks }: { opens: Hit[]; clicks: Hit[] }) {
  const hits = [...opens.map((hit) => ({ ...hit, what: 'Opened' })), ...clicks.map((hit) => ({ ...hit, what: 'Clicked' }))]
  hits.sort((a, b) => a.timestampIso.localeCompare(b.timestampIso))
  return (
    <Section title="Opens and clicks">
      {hits.length === 0 && <Empty>None recorded.</Empty>}
      <ul className="flex flex-col gap-3 text-sm">
        {hits.map((hit, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: hits have no id and only ever grow at the end
          <li key={index}>
            <p className="flex flex-wrap items-center gap-2">
              <span className="font-medium">{hit.what}</span>
              <Badge tone={hit.source === 'human' ? 'good' : 'none'} title={hit.reason}>
                {hit.source}
              </Badge>
              <span className="text-soft">
                <Time at={hit.timestampIso} /> {hit.ipAddress}
              </span>
            </p>
            {hit.url && <p className="[overflow-wrap:anywhere]">{hit.url}</p>}
            <p className="text-soft [overflow-wrap:anywhere]">{hit.userAgent}</p>
          </li>
        ))}
      </ul>
    </Section>
  )
}
