/** One email: its status and reason, timeline, content, and the actions that its status permits. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { get } from '../api-client.ts'
import type { Email, EmailMoreResponse } from '../api-types.ts'
import { Badge, Heading, Problem, StatusBadge } from '../parts/basic-components.tsx'
import { EmailContent } from '../parts/email-content.tsx'
import { EmailFacts } from '../parts/email-facts.tsx'
import { Timeline } from '../parts/email-timeline.tsx'
import { besideFacts } from '../parts/facts.tsx'
import { OneEmailActions } from '../parts/one-email-actions.tsx'
import { BackTo, Waiting } from '../parts/paged-lists.tsx'
import { Sentence, Time } from '../parts/time-and-copy.tsx'
import { useParam } from '../parts/url-params.ts'
import { texts } from '../texts.ts'

const everyMs = 3000
const words = texts.email

export function EmailPage() {
  const id = useParam('emailId')
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
  const isSuppressed = more.data?.isSuppressed
  const refresh = () => client.invalidateQueries({ queryKey: key })
  if (!email) return <Waiting error={error} />
  return (
    <>
      <BackTo to="/emails">{texts.pages.emails}</BackTo>
      <Heading
        title={email.to}
        beside={
          <>
            <StatusBadge status={email.status} /> {email.test && <Badge tone="none">{words.test}</Badge>}
            {isSuppressed && <Badge tone="wait">{words.suppressed}</Badge>}
          </>
        }
        about={<span className="text-base text-ink">{email.subject || texts.emails.noSubject}</span>}
      >
        <OneEmailActions key={email.status} email={email} isSuppressed={isSuppressed} curl={curlFor(email)} refresh={refresh} />
      </Heading>
      <Problem error={more.error ?? error} />
      <div className={besideFacts}>
        <div className="min-w-0">
          <Explanation of={email} />
          <Timeline email={email} more={more.data} onReplayed={() => void refresh()} />
          <EmailContent id={email.id} from={email.from} isHidden={email.contentHidden} />
        </div>
        <EmailFacts email={email} more={more.data} />
      </div>
    </>
  )
}

const looks = {
  none: 'border border-line bg-sheet',
  wait: 'bg-wait-back text-wait',
  bad: 'bg-bad-back text-bad',
} as const
const looksOf = { pending: 'none', sent: 'none', softfail: 'wait', held: 'wait', hardfail: 'bad', bounced: 'bad' } as const

/** "Attempt 2 at …", which the time says better. */
const onlyAttempt = /^Attempt \d+ at \S+\.$/

/** The reason of the status and the next step. The words of the last attempt are in the timeline; here is their kind. */
function Explanation({ of: { status, deliveries = [], explanation } }: { of: Email }) {
  const { now, next, nextAt, blockedBy } = explanation
  const last = deliveries.toSorted((a, b) => a.timestampIso.localeCompare(b.timestampIso)).at(-1)
  const kind = last?.classification?.replaceAll('_', ' ')
  const isRepeated = last !== undefined && kind !== undefined && now.includes(last.details)
  const isAhead = nextAt && Date.parse(nextAt) > Date.now()
  return (
    <div className={`rounded-lg px-4 py-3 text-sm ${looks[looksOf[status]]}`}>
      <p className="font-medium">
        {isRepeated ? (
          words.because(texts.status[status], kind, last.code)
        ) : (
          <>
            <Sentence>{now}</Sentence>{' '}
            {blockedBy && blockedBy !== 'scheduled' && <Badge tone="none">{blockedBy.replaceAll('_', ' ')}</Badge>}
          </>
        )}
      </p>
      <p className={`mt-0.5 ${looksOf[status] === 'none' ? 'text-soft' : ''}`}>
        {isAhead && onlyAttempt.test(next) ? (
          <>
            {words.next} <Time at={nextAt} /> (<Time at={nextAt} clock="minutes" />)
          </>
        ) : (
          <>
            <Sentence>{next}</Sentence>
            {isAhead && (
              <>
                {' '}
                · <Time at={nextAt} />
              </>
            )}
          </>
        )}
      </p>
    </div>
  )
}

/** Requests this email; the key is a placeholder. */
const curlFor = ({ id }: Email) => `curl '${location.origin}/v1/emails/${id}?expand=full' -H "Authorization: Bearer $POSTRIDER_KEY"`
