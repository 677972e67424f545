/** One email: its status and reason, attempts, content, tracking events, and the available actions. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { get, post } from '../api-client.ts'
import type { Email, EmailMoreResponse } from '../api-types.ts'
import { Confirm } from '../parts/action-dialogs.tsx'
import { Badge, Button, Copy, Heading, Problem, Sentence, StatusBadge, Time } from '../parts/basic-components.tsx'
import { EmailContent } from '../parts/email-content.tsx'
import { Activity, MadeBy, WebhooksTold } from '../parts/email-related.tsx'
import { Timeline } from '../parts/email-timeline.tsx'
import { BackTo, Waiting } from '../parts/paged-lists.tsx'
import { useParam } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const everyMs = 3000
const retryable = ['softfail', 'hardfail', 'bounced', 'held']
const queued = ['pending', 'softfail', 'held']
const words = texts.email

export function EmailPage() {
  const id = useParam('emailId')
  const { mayChange } = useHere()
  const client = useQueryClient()
  const key = ['email', id]
  const { data: email, error } = useQuery({
    queryKey: key,
    queryFn: () => get<Email>(`/v1/emails/${id}?expand=deliveries,activity`),
    refetchInterval: everyMs,
  })
  const more = useQuery({
    queryKey: [...key, 'more'],
    queryFn: () => get<EmailMoreResponse>(`/dashboard/api/emails/${id}/more`),
    // A final email is loaded once, because finding the request that sent it searches the log by time across all callers.
    refetchInterval: email && ['pending', 'softfail', 'held'].includes(email.status) ? everyMs : false,
  })
  const [cancelling, setCancelling] = useState(false)
  const refresh = () => client.invalidateQueries({ queryKey: key })
  const actions = useActions(id, refresh)
  if (!email) return <Waiting error={error} />
  return (
    <>
      <BackTo to="/emails">{texts.pages.emails}</BackTo>
      <Heading title={email.to}>
        {mayChange && <Actions email={email} actions={actions} onCancel={() => setCancelling(true)} />}
        <Copy label={words.curl} text={curlFor(email)} />
      </Heading>
      <Problem error={actions.error ?? more.error ?? error} />
      <State email={email} />
      <Facts email={email} />
      <Timeline email={email} more={more.data} />
      <EmailContent id={email.id} />
      <Activity of={email.activity} />
      <WebhooksTold told={more.data?.webhooks ?? []} onReplayed={() => void refresh()} />
      {more.data && <MadeBy request={more.data.request} />}
      {cancelling && (
        <Confirm
          title={words.cancelTitle(email.to)}
          text={words.cancelText}
          action={words.cancel}
          run={() => post(`/dashboard/api/emails/${id}/cancel`)}
          onDone={async () => {
            setCancelling(false)
            await refresh()
          }}
          onClose={() => setCancelling(false)}
        />
      )}
    </>
  )
}

function useActions(id: string, refresh: () => Promise<void>) {
  const { member } = useHere()
  const release = useMutation({ mutationFn: () => post(`/dashboard/api/emails/${id}/release`), onSuccess: refresh })
  const retry = useMutation({ mutationFn: () => post(`/v1/emails/${id}/retry`), onSuccess: refresh })
  const suppress = useMutation({
    mutationFn: (one: Email) => post('/v1/suppressions', { address: one.to, reason: words.reason(member.address), tenantId: one.tenantId }),
  })
  return { release, retry, suppress, error: retry.error ?? release.error ?? suppress.error }
}

/** Buttons for the actions that the email's status permits. */
function Actions(props: { email: Email; actions: ReturnType<typeof useActions>; onCancel: () => void }) {
  const { email, onCancel } = props
  const { release, retry, suppress } = props.actions
  return (
    <>
      {retryable.includes(email.status) && (
        <Button kind="main" disabled={retry.isPending} onClick={() => retry.mutate()}>
          {words.retry}
        </Button>
      )}
      {email.status === 'held' && (
        <Button disabled={release.isPending} onClick={() => release.mutate()}>
          {words.release}
        </Button>
      )}
      {queued.includes(email.status) && (
        <Button kind="danger" onClick={onCancel}>
          {words.cancel}
        </Button>
      )}
      <Button disabled={suppress.isPending || suppress.isSuccess} onClick={() => suppress.mutate(email)}>
        {suppress.isSuccess ? words.suppressed : words.suppress}
      </Button>
    </>
  )
}

/** The status and its explanation. */
const State = ({ email: { status, test, explanation } }: { email: Email }) => (
  <div className="rounded-md border border-line bg-sheet p-4">
    <p className="flex flex-wrap items-center gap-2">
      <StatusBadge status={status} /> {test && <Badge tone="none">{words.test}</Badge>}{' '}
      {explanation.blockedBy && <Badge tone="none">{explanation.blockedBy.replaceAll('_', ' ')}</Badge>}
      <span>
        <Sentence>{explanation.now}</Sentence>
      </span>
    </p>
    <p className="mt-2 text-sm text-soft">
      <Sentence>{explanation.next}</Sentence>
    </p>
  </div>
)

const Facts = ({ email }: { email: Email }) => (
  <dl className="mt-4 grid gap-x-4 gap-y-1 text-sm md:grid-cols-[8rem_1fr] [&_dd]:mb-2 [&_dd]:[overflow-wrap:anywhere] md:[&_dd]:mb-0 [&_dt]:text-soft">
    <dt>{words.subject}</dt>
    <dd>{email.subject || texts.emails.noSubject}</dd>
    <dt>{words.sender}</dt>
    <dd>{email.from}</dd>
    <dt>{words.accepted}</dt>
    <dd>
      <Time at={email.timestampIso} />
    </dd>
    {email.tag && (
      <>
        <dt>{words.tag}</dt>
        <dd>
          <Link to="/emails" search={{ tag: email.tag }} className="text-accent underline">
            {email.tag}
          </Link>
        </dd>
      </>
    )}
    <dt>{words.id}</dt>
    <dd className="font-mono text-xs">{email.id}</dd>
    <dt>{words.messageId}</dt>
    <dd className="font-mono text-xs">{email.messageId}</dd>
    {Object.entries(email.metadata ?? {}).map(([name, value]) => (
      <div key={name} className="contents">
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)

/** Requests this email; the key is a placeholder. */
const curlFor = ({ id }: Email) => `curl '${location.origin}/v1/emails/${id}?expand=full' -H "Authorization: Bearer $POSTRIDER_KEY"`
