/**
 * Decides the outcome of an attempt for each recipient: a pure function of the remote server's reply, the number of attempts so far, and
 * the retry schedule (contract section 7.2). The types are exhaustive: the compiler checks that every possible reply is handled.
 */
import { type Clock, type Ids, impossible } from '#base'
import { type ClassificationName, classification, classify, suppresses } from '#bounces'
import type { AttemptTls, EmailStatus } from '#emails'
import type { Failure, Peer, RecipientResult, Reply, TlsFacts, TransactionResult } from '#smtp'
import { type Claimed, type RetrySchedule, retryDelayMs } from '#spool'
import type { AutomaticReason } from '#suppressions'
import type { GuardedHost } from './tls/policy.ts'

/** The remote MTA of an attempt: the address connected to, or only the host name that was looked up. */
export interface RemoteEnd {
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
export interface Finding {
  kind: 'accepted' | 'temporary' | 'permanent' | 'unknown' | 'suppressed' | 'tenant stopped' | 'domain stopped'
  reply: Reply | null
  classification: ClassificationName | null
  enhanced: string | null
  /** A description of the failure, for an attempt without a reply. */
  message: string
}

export interface Outcome {
  claimed: Claimed
  status: EmailStatus
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
  outcomeUnknown: boolean
  conversation: string | null
  /** The hold reason; null unless the status is held. */
  heldBecause: 'suppressed' | 'tenant' | 'domain' | null
  suppress: AutomaticReason | null
  unsuppress: boolean
}

const heldForMs = 7 * 86_400_000
const longestOutput = 4000
/** Maximum length in characters: a message may quote a reply of any length from a remote server. */
const longestMessage = 500

export function findingOf(result: RecipientResult): Finding {
  switch (result.state) {
    case 'accepted':
      return { kind: 'accepted', reply: result.reply, classification: null, enhanced: result.reply.enhanced, message: '' }
    case 'refused':
      return findingOfReply(result.reply, result.stage)
    case 'failed':
      return findingOfFailure(result.failure)
    case 'unknown':
      return { kind: 'unknown', reply: null, classification: 'connection_error', enhanced: null, message: result.failure.message }
    default:
      return impossible(result)
  }
}

/** The stages before RCPT name no recipient. A refusal there does not concern the recipient, who must not be suppressed. */
const namesNobody: readonly Failure['stage'][] = ['connect', 'greeting', 'ehlo', 'tls', 'auth', 'mail']

/** The stages before MAIL name no message either. A refusal there concerns the connection, and the message waits for a better one. */
const beforeMail: readonly Failure['stage'][] = namesNobody.filter((stage) => stage !== 'mail')

export function findingOfReply(reply: Reply, stage: Failure['stage'] = 'rcpt'): Finding {
  const { classification: said, permanent } = classify(reply)
  const name = namesNobody.includes(stage) && suppresses(said) ? 'policy_violation' : said
  const isFinal = permanent && !beforeMail.includes(stage)
  return { kind: isFinal ? 'permanent' : 'temporary', reply, classification: name, enhanced: reply.enhanced, message: '' }
}

/**
 * The delay reason of an email that was not offered: the result of the connection opened for another email. It contains codes only,
 * because the text was meant for that other email.
 */
export function otherConnection({ reply, message }: Finding, { host }: RemoteEnd): string {
  const codes = reply && [reply.code, reply.enhanced].filter((one) => one !== null).join(' ')
  return `${host} ${codes ? `answered the connection made for another email with ${codes}` : `was not reached for another email: ${message}`}`
}

/** The result for an email that was not offered: postponed, and without a reply. */
export const notOffered = (said: Finding, remote: RemoteEnd): Finding => ({
  kind: 'temporary',
  reply: null,
  classification: said.reply || said.kind === 'permanent' ? 'connection_error' : said.classification,
  enhanced: null,
  message: `not offered, because ${otherConnection(said, remote).slice(0, longestMessage)}`,
})

/** A transaction that ended before the final dot: the message was not sent. */
export function findingOfFailure(failure: Failure): Finding {
  // A relay that rejects the password does not judge the message: the mail waits until the operator corrects the password.
  if (failure.reply && failure.stage !== 'auth') return findingOfReply(failure.reply, failure.stage)
  const temporary = (name: ClassificationName): Finding => ({
    kind: 'temporary',
    reply: null,
    classification: name,
    enhanced: null,
    message: failure.message,
  })
  /** Codes of RFC 3463 and RFC 6531. */
  const permanent = (name: ClassificationName, enhanced: string): Finding => ({
    kind: 'permanent',
    reply: null,
    classification: name,
    enhanced,
    message: failure.message,
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
      return impossible(failure.kind)
  }
}

/**
 * An email at its last attempt that was not offered for too long: a permanent failure without a suppression, because no server was asked.
 */
export const expired = (waitsFor: string): Finding => ({
  kind: 'permanent',
  reply: null,
  classification: 'connection_error',
  enhanced: '5.4.7',
  message: `expired more than a day after its last attempt was due at the latest: it was not offered, because ${waitsFor.slice(0, longestMessage)}`,
})

/** A result in which neither a remote server nor DNS had a part. */
export const unsaid = { reply: null, classification: null, enhanced: null } as const

/** An email that is no longer to be sent, through no fault of the recipient: a permanent failure without a suppression. */
export const cancelled = (message: string): Finding => ({
  kind: 'permanent',
  reply: null,
  classification: 'unclassified',
  enhanced: null,
  message,
})

export interface DecisionFacts {
  schedule: RetrySchedule
  fraction: () => number
  atMs: number
  durationMs: number
  repliedMs?: TransactionResult['repliedMs']
  remote: RemoteEnd
  conversation: string | null
  /** When to retry after an unknown outcome: at once if this process was lost, by the schedule if the connection was. */
  unknownRetry: 'at once' | 'by schedule'
}

/** A decision made now, without an SMTP conversation. */
export const untried = (
  { schedule, ids, clock }: { schedule: RetrySchedule; ids: Ids; clock: Clock },
  unknownRetry: DecisionFacts['unknownRetry'],
): DecisionFacts => ({
  schedule,
  fraction: () => ids.fraction(),
  atMs: clock.nowMs(),
  durationMs: 0,
  remote: nowhere,
  conversation: null,
  unknownRetry,
})

export function decide(claimed: Claimed, finding: Finding, facts: DecisionFacts): Outcome {
  const failures = claimed.failures + 1
  const exhausted = failures >= facts.schedule.maxAttempts
  const base = {
    claimed,
    atMs: facts.atMs,
    durationMs: Math.max(0, Math.round(facts.durationMs)),
    repliedMs: facts.repliedMs,
    output: (finding.reply?.text ?? '').slice(0, longestOutput),
    code: finding.reply?.code ?? null,
    enhanced: finding.enhanced,
    secure: facts.remote.secure,
    tls: facts.remote.tls,
    classification: finding.classification,
    classificationCode: finding.classification === null ? null : classification(finding.classification),
    remoteHost: facts.remote.host,
    source: facts.remote.source ?? null,
    outcomeUnknown: false,
    conversation: facts.conversation,
    details: detailsOf(claimed.recipient, finding, facts.remote),
    dueAtMs: null,
    heldBecause: null,
    suppress: null,
    unsuppress: false,
  }
  const laterMs = () => facts.atMs + retryDelayMs(failures, facts.schedule, facts.fraction())
  switch (finding.kind) {
    case 'accepted':
      return { ...base, status: 'sent', unsuppress: claimed.manual }
    case 'suppressed':
      return { ...base, status: 'held', heldBecause: 'suppressed', dueAtMs: facts.atMs + heldForMs }
    case 'tenant stopped':
      return { ...base, status: 'held', heldBecause: 'tenant', dueAtMs: facts.atMs + heldForMs }
    case 'domain stopped':
      return { ...base, status: 'held', heldBecause: 'domain', dueAtMs: facts.atMs + heldForMs }
    case 'permanent':
      return { ...base, status: 'hardfail', suppress: finding.classification && suppresses(finding.classification) ? 'hard fail' : null }
    case 'temporary':
      return exhausted
        ? { ...base, status: 'hardfail', suppress: 'too many soft fails' }
        : { ...base, status: 'softfail', dueAtMs: laterMs() }
    case 'unknown': {
      const unknown = { ...base, outcomeUnknown: true, output: '', code: null }
      if (exhausted) return { ...unknown, status: 'hardfail', suppress: null }
      return { ...unknown, status: 'softfail', dueAtMs: facts.unknownRetry === 'at once' ? facts.atMs : laterMs() }
    }
    default:
      return impossible(finding.kind)
  }
}

/** The sentences of contract section 7.8. */
function detailsOf(recipient: string, finding: Finding, remote: RemoteEnd): string {
  const where =
    remote.address !== null
      ? ` at ${remote.address.includes(':') ? `[${remote.address}]` : remote.address}:${remote.port} (${remote.host})`
      : ''
  const because = finding.message === '' ? '' : `: ${finding.message.slice(0, longestMessage)}`
  switch (finding.kind) {
    case 'accepted':
      return `Message for ${recipient} accepted by${where.slice(3)}`
    case 'suppressed':
      return `${recipient} is on the suppression list`
    case 'tenant stopped':
    case 'domain stopped':
      return `the email to ${recipient} is kept back${because}`
    case 'unknown':
      return `outcome unknown: Delivery to ${recipient} may have happened${where}${because}`
    case 'permanent':
    case 'temporary': {
      const code = finding.reply ? `${finding.reply.code} ` : ''
      return `${code}${(finding.classification ?? 'unclassified').replaceAll('_', ' ')}: Delivery to ${recipient} failed${where}${because}`
    }
    default:
      return impossible(finding.kind)
  }
}

/** `tls` null: the connection was not encrypted. */
export const remoteOf = (peer: Peer, { secure, tls }: { secure: boolean; tls: TlsFacts | null }, host: GuardedHost): RemoteEnd => ({
  host: peer.host,
  address: peer.address,
  port: peer.port,
  secure,
  tls: {
    version: tls?.version ?? null,
    cipher: tls?.cipher ?? null,
    certificate: tls?.certificate ?? null,
    policy: host.policy,
    wouldFail: host.policy === 'mta-sts testing' ? shortcoming(tls, host) : null,
  },
})

/** The reason for which an enforced MTA-STS policy would refuse this connection. */
function shortcoming(tls: TlsFacts | null, { isUnlisted }: GuardedHost): string | null {
  if (isUnlisted) return 'the policy does not name this mail server'
  if (!tls) return 'there is no TLS'
  return tls.certificate === 'valid' ? null : `the certificate does not do: ${tls.certificate}`
}

export const nowhere: RemoteEnd = { host: null, address: null, port: null, secure: false, tls: null }
