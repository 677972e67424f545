/** The timeline of one email: acceptance, every attempt with its details, and the next step. */

import type { Attempt, Email, EmailMoreResponse } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge, Pre, Section, StatusBadge, Time } from './basic-components.tsx'

const words = texts.email

export function Timeline({ email, more }: { email: Email; more: EmailMoreResponse | undefined }) {
  const attempts = [...(email.deliveries ?? [])].sort((a, b) => a.timestampIso.localeCompare(b.timestampIso))
  const { nextAt } = email.explanation
  return (
    <Section title={words.timeline}>
      <ol className="border-l-2 border-line pl-4">
        <li className="mb-4 text-sm">
          <span className="font-medium">{words.accepted}</span>{' '}
          <span className="text-soft">
            <Time at={email.timestampIso} />
          </span>
        </li>
        {attempts.map((attempt, index) =>
          attempt.status === 'bounced' ? (
            <LateBounce key={attempt.id} attempt={attempt} />
          ) : (
            <OneAttempt
              key={attempt.id}
              attempt={attempt}
              number={attempts.slice(0, index + 1).filter(({ status }) => status !== 'bounced').length}
              more={more?.attempts.find(({ id }) => id === attempt.id)}
            />
          ),
        )}
        {nextAt && (
          <li className="mb-4 text-sm text-soft">
            {words.next} <Time at={nextAt} />
          </li>
        )}
      </ol>
      {attempts.length === 0 && <p className="text-sm text-soft">{words.notTried}</p>}
    </Section>
  )
}

/** A bounce received by mail, without a connection. */
function LateBounce({ attempt }: { attempt: Attempt }) {
  const { classification, smtpEnhancedCode, remoteHost } = attempt
  return (
    <li className="mb-4 text-sm">
      <p className="flex flex-wrap items-center gap-2">
        <StatusBadge status={attempt.status} />
        <span className="font-medium">{words.bounceReceived}</span>
        <span className="text-soft">
          <Time at={attempt.timestampIso} />
        </span>
      </p>
      <p className="mt-1 [overflow-wrap:anywhere]">{attempt.details}</p>
      <p className="mt-1 flex flex-wrap gap-2">
        {remoteHost && <Badge tone="none">{words.reportedBy(remoteHost)}</Badge>}
        {smtpEnhancedCode && <Badge tone="none">{smtpEnhancedCode}</Badge>}
        {classification && <Badge tone="none">{classification.replaceAll('_', ' ')}</Badge>}
      </p>
      {attempt.output && (
        <details className="mt-1">
          <summary className="text-accent">{words.report}</summary>
          <Pre label={words.report}>{attempt.output}</Pre>
        </details>
      )}
    </li>
  )
}

function OneAttempt({
  attempt,
  number,
  more,
}: {
  attempt: Attempt
  number: number
  more: EmailMoreResponse['attempts'][number] | undefined
}) {
  const { remoteHost, sentWithSsl, classification, smtpEnhancedCode, outcomeUnknown, tls, sourceAddress, code } = attempt
  return (
    <li className="mb-4 text-sm">
      <p className="flex flex-wrap items-center gap-2">
        <StatusBadge status={attempt.status} />
        <span className="font-medium">{words.attempt(number)}</span>
        <span className="text-soft">
          <Time at={attempt.timestampIso} />
          {more && ` · ${words.took(more.durationMs.toLocaleString())}`}
        </span>
        {outcomeUnknown && <Badge tone="wait">{words.unknown}</Badge>}
      </p>
      <p className="mt-1 [overflow-wrap:anywhere]">{attempt.details}</p>
      <p className="mt-1 flex flex-wrap gap-2">
        {remoteHost && <Badge tone="none">{remoteHost}</Badge>}
        {remoteHost && <Badge tone={sentWithSsl ? 'good' : 'wait'}>{sentWithSsl ? (tls?.version ?? words.tls) : words.noTls}</Badge>}
        {code !== undefined && <Badge tone="none">{code}</Badge>}
        {smtpEnhancedCode && <Badge tone="none">{smtpEnhancedCode}</Badge>}
        {classification && <Badge tone="none">{classification.replaceAll('_', ' ')}</Badge>}
      </p>
      {tls && (
        <p className="mt-1 text-soft [overflow-wrap:anywhere]">
          {[tls.cipher, tls.certificate && words.certificate(tls.certificate), words.policy(tls.policy), tls.mtaStsTestingFailure]
            .filter((one) => one !== null && one !== '')
            .join(' · ')}
        </p>
      )}
      {sourceAddress && <p className="mt-1 text-soft">{words.from(sourceAddress)}</p>}
      {attempt.output && (
        <details className="mt-1">
          <summary className="text-accent">{words.reply}</summary>
          <Pre label={words.replyOf(number)}>{attempt.output}</Pre>
        </details>
      )}
      {more?.conversation && (
        <details className="mt-1">
          <summary className="text-accent">{words.conversation}</summary>
          <Pre label={words.conversationOf(number)}>{more.conversation}</Pre>
        </details>
      )}
    </li>
  )
}
