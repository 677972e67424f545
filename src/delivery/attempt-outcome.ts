/**
 * Decides the outcome of an attempt for each recipient: a pure function of the remote server's reply, the number of attempts so far, and
 * the retry schedule (contract section 7.2). The types are exhaustive: the compiler checks that every possible reply is handled.
 */
import { assertNever, type Clock, type Ids } from '#base'
import { type ClassificationName, classification, classify, suppresses } from '#bounces'
import type { AttemptTls } from '#emails'
import type { Failure, Peer, RecipientResult, Reply, TlsFacts, TransactionResult } from '#smtp'
import { type Claimed, type RetrySchedule, retryDelayMs } from '#spool'
import type { AutomaticReason } from '#suppressions'
import type { GuardedHost } from './tls/tls-policy.ts'

/** The remote MTA of an attempt: the address connected to, or only the host name that was looked up. */
export interface RemoteMta {
  host: string | null
  address: string | null
  port: number | null
  secure: boolean
  /** Null: no connection was made, or its state is not known. */
  tls: AttemptTls | null
  /** The egress source, unless the operating system chose it. */
  source?: string | undefined
}

/** The result of one attempt for one recipient, before the outcome is decided. */
export interface AttemptResult {
  kind: 'accepted' | 'temporary' | 'permanent' | 'unknown' | 'suppressed' | 'tenant_paused' | 'domain_paused'
  reply: Reply | null
  classification: ClassificationName | null
  enhanced: string | null
  /** A description of the failure, for an attempt without a reply. */
  message: string
  /** Nothing was sent because of Postrider itself, so that the recipient is not suppressed for it. */
  isOwnFault?: true
}

export interface Outcome {
  claimed: Claimed
  status: 'sent' | 'softfail' | 'hardfail' | 'held'
  /** When the spool looks at the recipient again; null for final statuses. */
  dueAtMs: number | null
  atMs: number
  durationMs: number
  /** Times of the replies of an SMTP transaction, in ms after it began. */
  repliedMs?: TransactionResult['repliedMs'] | undefined
  details: string
  output: string
  code: number | null
  enhanced: string | null
  secure: boolean
  tls: AttemptTls | null
  classification: ClassificationName | null
  classificationCode: number | null
  remoteHost: string | null
  source: string | null
  /** null: the installation has no transport rules. */
  transport: string | null
  outcomeUnknown: boolean
  conversation: string | null
  /** The hold reason; null unless the status is held. */
  holdReason: 'suppressed' | 'tenant' | 'domain' | null
  suppress: AutomaticReason | null
  unsuppress: boolean
}

const heldForMs = 7 * 86_400_000
const maxOutputLength = 4000
/** Maximum length in characters: a message may quote a reply of any length from a remote server. */
const maxMessageLength = 500

/** The result for one recipient of an SMTP transaction. */
export function resultOf(result: RecipientResult): AttemptResult {
  switch (result.state) {
    case 'accepted':
      return { kind: 'accepted', reply: result.reply, classification: null, enhanced: result.reply.enhanced, message: '' }
    case 'refused':
      return resultOfReply(result.reply, result.stage)
    case 'failed':
      return resultOfFailure(result.failure)
    case 'unknown':
      return { kind: 'unknown', reply: null, classification: 'connection_error', enhanced: null, message: result.failure.message }
    default:
      return assertNever(result)
  }
}

/** The stages before RCPT name no recipient. A refusal there does not concern the recipient, who must not be suppressed. */
const namesNobody: readonly Failure['stage'][] = ['connect', 'greeting', 'ehlo', 'tls', 'auth', 'mail']

/** The stages before MAIL name no message either. A refusal there concerns the connection, and the message waits for a better one. */
const beforeMail: readonly Failure['stage'][] = namesNobody.filter((stage) => stage !== 'mail')

/** A refusal, classified by the reply and by the stage at which it came. */
export function resultOfReply(reply: Reply, stage: Failure['stage'] = 'rcpt'): AttemptResult {
  const { classification: cause, permanent } = classify(reply)
  const name = namesNobody.includes(stage) && suppresses(cause) ? 'policy_violation' : cause
  const isFinal = permanent && !beforeMail.includes(stage)
  return { kind: isFinal ? 'permanent' : 'temporary', reply, classification: name, enhanced: reply.enhanced, message: '' }
}

/**
 * The delay reason of an email that was not offered: the result of the connection opened for another email. It contains codes only,
 * because the text was meant for that other email.
 */
export function otherConnection({ reply, message }: AttemptResult, { host }: RemoteMta): string {
  const codes = reply && [reply.code, reply.enhanced].filter((one) => one !== null).join(' ')
  return `${host} ${codes ? `replied ${codes} on a connection opened for another email` : `was unreachable for another email: ${message}`}`
}

/** The result for an email that was not offered: postponed, and without a reply. */
export const notOffered = (cause: AttemptResult, remote: RemoteMta): AttemptResult => ({
  kind: 'temporary',
  reply: null,
  classification: cause.reply || cause.kind === 'permanent' ? 'connection_error' : cause.classification,
  enhanced: null,
  message: `not attempted: ${otherConnection(cause, remote).slice(0, maxMessageLength)}`,
})

/** A transaction that ended before the final dot: the message was not sent. */
export function resultOfFailure(failure: Failure): AttemptResult {
  // A relay that rejects the password does not judge the message: the mail waits until the operator corrects the password.
  if (failure.reply && failure.stage !== 'auth') return resultOfReply(failure.reply, failure.stage)
  const { message } = failure
  const temporary = (name: ClassificationName): AttemptResult => ({ ...noReply, kind: 'temporary', classification: name, message })
  /** Codes of RFC 3463 and RFC 6531. */
  const permanent = (name: ClassificationName, enhanced: string): AttemptResult => ({
    ...noReply,
    kind: 'permanent',
    classification: name,
    enhanced,
    message,
  })
  switch (failure.kind) {
    case 'size':
      return permanent('message_too_large', '5.3.4')
    case 'smtputf8':
      return permanent('protocol_error', '5.6.7')
    case 'eightbitmime':
      return permanent('protocol_error', '5.6.3')
    case 'loop':
      return permanent('protocol_error', '5.4.6')
    case 'tls':
      return temporary('tls_required')
    case 'protocol':
      return temporary('protocol_error')
    case 'reply':
    case 'refused':
    case 'timeout':
    case 'dropped':
    case 'aborted':
      return temporary('connection_error')
    default:
      return assertNever(failure.kind)
  }
}

/**
 * An email at its last attempt that was not offered for too long: a permanent failure without a suppression, because no server was asked.
 */
export const expired = (delayReason: string): AttemptResult => ({
  kind: 'permanent',
  reply: null,
  classification: 'connection_error',
  enhanced: '5.4.7',
  message: `expired more than a day after its last attempt was due: not attempted: ${delayReason.slice(0, maxMessageLength)}`,
})

/** A result in which neither a remote server nor DNS had a part. */
export const noReply = { reply: null, classification: null, enhanced: null } as const

/** An email that is no longer to be sent, through no fault of the recipient: a permanent failure without a suppression. */
export const cancelled = (message: string): AttemptResult => ({
  kind: 'permanent',
  reply: null,
  classification: 'unclassified',
  enhanced: null,
  message,
})

export interface AttemptContext {
  schedule: RetrySchedule
  random: () => number
  atMs: number
  durationMs: number
  repliedMs?: TransactionResult['repliedMs']
  remote: RemoteMta
  conversation: string | null
  /** The transport of the job, if it has one. */
  transport?: string | undefined
  /** When to retry after an unknown outcome: at once if this process was lost, by the schedule if the connection was. */
  unknownRetry: 'at once' | 'by schedule'
}

/** A decision made now, without an SMTP conversation. */
export const withoutAttempt = (
  { schedule, ids, clock }: { schedule: RetrySchedule; ids: Ids; clock: Clock },
  unknownRetry: AttemptContext['unknownRetry'],
): AttemptContext => ({
  schedule,
  random: () => ids.random(),
  atMs: clock.nowMs(),
  durationMs: 0,
  remote: noRemote,
  conversation: null,
  unknownRetry,
})

/** Decides the status, the next attempt and the suppression for one recipient. */
export function decideOutcome(claimed: Claimed, attemptResult: AttemptResult, facts: AttemptContext): Outcome {
  const attempts = claimed.attempts + 1
  const exhausted = attempts >= facts.schedule.maxAttempts
  const base = undecided(claimed, attemptResult, facts)
  const laterMs = () => facts.atMs + retryDelayMs(attempts, facts.schedule, facts.random())
  switch (attemptResult.kind) {
    case 'accepted':
      return { ...base, status: 'sent', unsuppress: claimed.manualRetry }
    case 'suppressed':
      return { ...base, status: 'held', holdReason: 'suppressed', dueAtMs: facts.atMs + heldForMs }
    case 'tenant_paused':
      return { ...base, status: 'held', holdReason: 'tenant', dueAtMs: facts.atMs + heldForMs }
    case 'domain_paused':
      return { ...base, status: 'held', holdReason: 'domain', dueAtMs: facts.atMs + heldForMs }
    case 'permanent':
      return {
        ...base,
        status: 'hardfail',
        suppress: attemptResult.classification && suppresses(attemptResult.classification) ? 'hard fail' : null,
      }
    case 'temporary':
      return exhausted
        ? { ...base, status: 'hardfail', suppress: attemptResult.isOwnFault ? null : 'too many soft fails' }
        : { ...base, status: 'softfail', dueAtMs: laterMs() }
    case 'unknown': {
      const unknown = { ...base, outcomeUnknown: true, output: '', code: null }
      if (exhausted) return { ...unknown, status: 'hardfail', suppress: null }
      return { ...unknown, status: 'softfail', dueAtMs: facts.unknownRetry === 'at once' ? facts.atMs : laterMs() }
    }
    default:
      return assertNever(attemptResult.kind)
  }
}

/** The facts of the attempt, with the values of an outcome without changes. */
const undecided = (claimed: Claimed, attemptResult: AttemptResult, facts: AttemptContext): Omit<Outcome, 'status'> => ({
  claimed,
  atMs: facts.atMs,
  durationMs: Math.max(0, Math.round(facts.durationMs)),
  repliedMs: facts.repliedMs,
  output: (attemptResult.reply?.text ?? '').slice(0, maxOutputLength),
  code: attemptResult.reply?.code ?? null,
  enhanced: attemptResult.enhanced,
  secure: facts.remote.secure,
  tls: facts.remote.tls,
  classification: attemptResult.classification,
  classificationCode: attemptResult.classification === null ? null : classification(attemptResult.classification),
  remoteHost: facts.remote.host,
  source: facts.remote.source ?? null,
  transport: facts.transport ?? null,
  outcomeUnknown: false,
  conversation: facts.conversation,
  details: detailsOf(claimed.recipient, attemptResult, facts.remote),
  dueAtMs: null,
  holdReason: null,
  suppress: null,
  unsuppress: false,
})

/** The sentences of contract section 7.8. */
function detailsOf(recipient: string, attemptResult: AttemptResult, remote: RemoteMta): string {
  const where =
    remote.address !== null
      ? ` at ${remote.address.includes(':') ? `[${remote.address}]` : remote.address}:${remote.port} (${remote.host})`
      : ''
  const reason = attemptResult.message === '' ? '' : `: ${attemptResult.message.slice(0, maxMessageLength)}`
  switch (attemptResult.kind) {
    case 'accepted':
      return `Message for ${recipient} accepted by${where.slice(3)}`
    case 'suppressed':
      return `${recipient} is on the suppression list`
    case 'tenant_paused':
    case 'domain_paused':
      return `the email to ${recipient} is held${reason}`
    case 'unknown':
      return `outcome unknown: Delivery to ${recipient} may have happened${where}${reason}`
    case 'permanent':
    case 'temporary': {
      const code = attemptResult.reply ? `${attemptResult.reply.code} ` : ''
      return `${code}${(attemptResult.classification ?? 'unclassified').replaceAll('_', ' ')}: Delivery to ${recipient} failed${where}${reason}`
    }
    default:
      return assertNever(attemptResult.kind)
  }
}

/** `tls` null: the connection was not encrypted. */
export const remoteOf = (peer: Peer, { secure, tls }: { secure: boolean; tls: TlsFacts | null }, host: GuardedHost): RemoteMta => ({
  host: peer.host,
  address: peer.address,
  port: peer.port,
  secure,
  tls: {
    version: tls?.version ?? null,
    cipher: tls?.cipher ?? null,
    certificate: tls?.certificate ?? null,
    policy: host.policy,
    mtaStsTestingFailure: host.policy === 'mta-sts testing' ? shortcoming(tls, host) : null,
  },
})

/** The reason for which an enforced MTA-STS policy would refuse this connection. */
function shortcoming(tls: TlsFacts | null, { isUnlisted }: GuardedHost): string | null {
  if (isUnlisted) return 'the policy does not list this mail server'
  if (!tls) return 'the connection is not encrypted'
  return tls.certificate === 'valid' ? null : `the certificate is not acceptable: ${tls.certificate}`
}

export const noRemote: RemoteMta = { host: null, address: null, port: null, secure: false, tls: null }
