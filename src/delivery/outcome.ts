/**
 * What an attempt came to, per recipient, and what follows from it: a pure decision from the remote's answer, the number of
 * failures before, and the schedule (contract section 7.2). Exhaustive: the compiler knows every answer a peer can give.
 */
import { type Clock, type Ids, impossible } from '#base'
import { type ClassificationName, classification, classify, suppresses } from '#bounces'
import type { AttemptTls, EmailStatus } from '#emails'
import type { Failure, Peer, RecipientResult, Reply, TlsFacts, TransactionResult } from '#smtp'
import { type Claimed, type RetrySchedule, retryDelayMs } from '#spool'
import type { AutomaticReason } from '#suppressions'
import type { GuardedHost } from './tls/policy.ts'

/** Where an attempt ended: the address connected to, or only the host that was looked for. */
export interface RemoteEnd {
  host: string | null
  address: string | null
  port: number | null
  secure: boolean
  /** Null: nothing was connected to, or nothing is known. */
  tls: AttemptTls | null
  /** Ours, where it was not left to the system. */
  source?: string | undefined
}

/** What is known about one try for one recipient, before it is decided what follows. */
export interface Finding {
  kind: 'accepted' | 'temporary' | 'permanent' | 'unknown' | 'suppressed' | 'tenant stopped' | 'domain stopped'
  reply: Reply | null
  classification: ClassificationName | null
  enhanced: string | null
  /** What happened, when there was no reply. */
  message: string
}

export interface Outcome {
  claimed: Claimed
  status: EmailStatus
  /** When the spool looks at it again; null for final states. */
  dueAtMs: number | null
  atMs: number
  durationMs: number
  /** When the replies of an SMTP transaction came, in ms after it began. */
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
  /** Why it is held, when it is. */
  heldBecause: 'suppressed' | 'tenant' | 'domain' | null
  suppress: AutomaticReason | null
  unsuppress: boolean
}

const heldForMs = 7 * 86_400_000
const longestOutput = 4000
/** A message may quote a reply, which a stranger may have made long. */
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

/** Before RCPT no recipient was named: what is refused there is not the recipient, who must not be suppressed. */
const namesNobody: readonly Failure['stage'][] = ['connect', 'greeting', 'ehlo', 'tls', 'auth', 'mail']

/** Before MAIL no message was named either: whatever is said there is about the connection, and the message waits for a better one. */
const beforeMail: readonly Failure['stage'][] = namesNobody.filter((stage) => stage !== 'mail')

export function findingOfReply(reply: Reply, stage: Failure['stage'] = 'rcpt'): Finding {
  const { classification: said, permanent } = classify(reply)
  const name = namesNobody.includes(stage) && suppresses(said) ? 'policy_violation' : said
  const isFinal = permanent && !beforeMail.includes(stage)
  return { kind: isFinal ? 'permanent' : 'temporary', reply, classification: name, enhanced: reply.enhanced, message: '' }
}

/** What an email waited for that was not offered: the connection made for another one came to this. Only codes are told: the words were said to that one. */
export function otherConnection({ reply, message }: Finding, { host }: RemoteEnd): string {
  const codes = reply && [reply.code, reply.enhanced].filter((one) => one !== null).join(' ')
  return `${host} ${codes ? `answered the connection made for another email with ${codes}` : `was not reached for another email: ${message}`}`
}

/** Of an email that was not offered: put off, without a reply that it never got. */
export const notOffered = (said: Finding, remote: RemoteEnd): Finding => ({
  kind: 'temporary',
  reply: null,
  classification: said.reply || said.kind === 'permanent' ? 'connection_error' : said.classification,
  enhanced: null,
  message: `not offered, because ${otherConnection(said, remote).slice(0, longestMessage)}`,
})

/** A conversation that ended before the final dot: nothing was sent. */
export function findingOfFailure(failure: Failure): Finding {
  // A relay that refuses our password says nothing about the message: the operator mends it, and the mail waits.
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

/** At its last attempt, and not offered for so long that waiting has to end: for good, and without a suppression, because nobody was asked. */
export const expired = (waitsFor: string): Finding => ({
  kind: 'permanent',
  reply: null,
  classification: 'connection_error',
  enhanced: '5.4.7',
  message: `expired more than a day after its last attempt was due at the latest: it was not offered, because ${waitsFor.slice(0, longestMessage)}`,
})

/** Of a finding that no peer and no DNS had a part in. */
export const unsaid = { reply: null, classification: null, enhanced: null } as const

/** Not to be sent any more, through nobody's fault: for good, and without a suppression. */
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
  /** The next try after an unknown outcome: at once when our own process was lost, by the schedule when the connection was. */
  unknownRetry: 'at once' | 'by schedule'
}

/** Of a decision without a conversation, at this moment. */
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

/** `tls`: null is in the clear. */
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

/** What an enforced MTA-STS policy would not let pass. */
function shortcoming(tls: TlsFacts | null, { isUnlisted }: GuardedHost): string | null {
  if (isUnlisted) return 'the policy does not name this mail server'
  if (!tls) return 'there is no TLS'
  return tls.certificate === 'valid' ? null : `the certificate does not do: ${tls.certificate}`
}

export const nowhere: RemoteEnd = { host: null, address: null, port: null, secure: false, tls: null }
