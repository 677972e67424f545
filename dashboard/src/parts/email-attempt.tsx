/** One delivery attempt: its result, host, encryption, reply and transcript. */
import type { Attempt, EmailMoreResponse } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge, StatusBadge } from './basic-components.tsx'
import { Pre, Time } from './time-and-copy.tsx'

const words = texts.email

interface OneAttemptProps {
  attempt: Attempt
  number: number
  more: EmailMoreResponse['attempts'][number] | undefined
}

export function OneAttempt({ attempt, number, more }: OneAttemptProps) {
  const { remoteHost, sentWithSsl, classification, smtpEnhancedCode, outcomeUnknown, tls, code } = attempt
  // Facts that are absent in the sentence above.
  const facts = [remoteHost, code, smtpEnhancedCode, classification?.replaceAll('_', ' ')].filter(
    (one) => one && !attempt.details.includes(String(one)),
  )
  return (
    <>
      <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <span className="font-medium">{words.attempt(number)}</span>
        <StatusBadge status={attempt.status} />
        <span className="text-xs text-soft">
          <Time at={attempt.timestampIso} exact />
          {more && ` · ${words.took(Math.max(1, more.durationMs).toLocaleString())}`}
        </span>
        {outcomeUnknown && <Badge tone="wait">{words.unknown}</Badge>}
      </p>
      <p className="mt-1 [overflow-wrap:anywhere]">{attempt.details}</p>
      <p className="mt-0.5 text-xs text-soft [overflow-wrap:anywhere]">
        {remoteHost && (sentWithSsl ? (tls?.version ?? words.tls) : <span className="text-wait">{words.noTls}</span>)}
        {remoteHost && facts.length > 0 && ' · '}
        {facts.join(' · ')}
      </p>
      <Details attempt={attempt} number={number} conversation={more?.conversation ?? null} />
    </>
  )
}

const Details = ({ attempt, number, conversation }: { attempt: Attempt; number: number; conversation: string | null }) => {
  const { tls, sourceAddress, output } = attempt
  return (
    <>
      {tls && (
        <p className="mt-1 text-xs text-soft [overflow-wrap:anywhere]">
          {[tls.cipher, tls.certificate && words.certificate(tls.certificate), words.policy(tls.policy), tls.mtaStsTestingFailure]
            .filter((one) => one !== null && one !== '')
            .join(' · ')}
        </p>
      )}
      {sourceAddress && <p className="mt-1 text-xs text-soft">{words.from(sourceAddress)}</p>}
      <div className="mt-1 flex flex-wrap gap-x-4 [&>details[open]]:basis-full">
        {output && (
          <details className="min-w-0">
            <summary className="w-fit text-xs text-soft hover:text-ink">{words.reply}</summary>
            <Pre label={words.replyOf(number)}>{output}</Pre>
          </details>
        )}
        {conversation && (
          <details className="min-w-0">
            <summary className="w-fit text-xs text-soft hover:text-ink">{words.conversation}</summary>
            <Pre label={words.conversationOf(number)}>{conversation}</Pre>
          </details>
        )}
      </div>
    </>
  )
}
