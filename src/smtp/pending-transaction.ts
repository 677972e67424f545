/**
 * The state of one transaction, and the meaning of its replies for its recipients (RFC 5321 section 3.3); independent of sockets.
 * Promises: each recipient gets exactly one result; `unknown` only after the final dot was handed to the network.
 */
import type { ConnectionLost } from './reply-channel.ts'
import { openTranscript, type Transcript } from './transcript.ts'
import type { Extensions, Failure, RecipientResult, Stage, Transaction, TransactionResult } from './types.ts'

export interface PendingTransaction {
  readonly transaction: Transaction
  /** For each recipient; undefined while open. */
  readonly results: (RecipientResult | undefined)[]
  /** Failures of this transaction so far share its transcript, which is complete only at the end. */
  readonly failures: Failure[]
  readonly answer: (result: TransactionResult) => void
  transcript: Transcript
  /** The reply awaited. */
  stage: Stage
  /** Its commands are being sent. */
  isBegun: boolean
  /** Its final dot has been handed to the network: a lost connection now leaves the outcome unknown. */
  isDotWritten: boolean
  /** The peer holds a transaction that only RSET or the final dot ends. */
  isMailOpen: boolean
  beganMs: number
  /** Time of the last reply of each stage, in ms since then. */
  readonly repliedMs: Partial<Record<Stage, number>>
}

export function openPendingTransaction(transaction: Transaction, answer: PendingTransaction['answer']): PendingTransaction {
  return {
    transaction,
    results: transaction.recipients.map(() => undefined),
    failures: [],
    answer,
    transcript: openTranscript(),
    stage: 'mail',
    isBegun: false,
    isDotWritten: false,
    isMailOpen: false,
    beganMs: 0,
    repliedMs: {},
  }
}

/** Appends the duration of each stage to the transcript. */
export function recordTimes({ transcript, repliedMs }: PendingTransaction): void {
  const times = Object.entries(repliedMs).map(([stage, ms]) => `${stage} after ${Math.round(ms)} ms`)
  if (times.length > 0) transcript.note(`replies: ${times.join(', ')}`)
}

export function isOpen(pending: PendingTransaction): boolean {
  return pending.results.includes(undefined)
}

/** Gives every open recipient the same result. */
export function setAllResults(pending: PendingTransaction, result: RecipientResult): void {
  for (let index = 0; index < pending.results.length; index++) pending.results[index] ??= result
}

function failureOf(pending: PendingTransaction, stage: Stage, reason: ConnectionLost): Failure {
  const failure: Failure = { stage, kind: reason.kind, reply: reason.reply, message: reason.message, transcript: '' }
  pending.failures.push(failure)
  return failure
}

/** The connection ended during this transaction. A reply that ended it can concern only the transaction being answered (`isFirst`). */
export function failTransaction(pending: PendingTransaction, reason: ConnectionLost, isFirst: boolean): void {
  if (pending.isBegun) pending.transcript.note(reason.message)
  if (isFirst && pending.isBegun && reason.reply) {
    setAllResults(pending, { state: 'refused', stage: pending.stage, reply: reason.reply })
    return
  }
  if (isFirst && reason.kind === 'protocol' && !pending.isDotWritten) discardReplies(pending)
  const failure = failureOf(pending, pending.stage, isFirst ? reason : asLostConnection(reason))
  setAllResults(pending, { state: pending.isDotWritten ? 'unknown' : 'failed', failure })
}

/** Out of sequence, a refusal may have been the reply to another command. The message was not sent, so a retry is safe. */
function discardReplies(pending: PendingTransaction): void {
  for (let index = 0; index < pending.results.length; index++)
    if (pending.results[index]?.state === 'refused') pending.results[index] = undefined
}

/** For this transaction, the end of another one means only a lost connection, or (421) that the peer closes it for all. */
function asLostConnection({ kind, message, reply }: ConnectionLost): ConnectionLost {
  if (kind === 'aborted') return { kind, message }
  return reply?.code === 421 ? { kind: 'dropped', message, reply } : { kind: 'dropped', message }
}

/** Refuses, before any command, a message that the peer cannot accept or that would break out of a command. */
export function checkPending(pending: PendingTransaction, extensions: Extensions): void {
  const { transaction } = pending
  const refuse = (index: number, kind: Failure['kind'], message: string, stage: Stage = 'mail') => {
    pending.results[index] ??= { state: 'failed', failure: failureOf(pending, stage, { kind, message }) }
  }
  const refuseAll = (kind: Failure['kind'], message: string) => {
    if (isOpen(pending)) setAllResults(pending, { state: 'failed', failure: failureOf(pending, 'mail', { kind, message }) })
  }
  const { data, recipients, returnPath } = transaction
  if (!isFitForCommand(returnPath)) refuseAll('protocol', 'the return path is not valid in an SMTP command')
  recipients.forEach((recipient, index) => {
    if (recipient === '' || !isFitForCommand(recipient)) refuse(index, 'protocol', 'the address is not valid in an SMTP command', 'rcpt')
  })
  if (data.length > 0 && !(data[data.length - 2] === 13 && data[data.length - 1] === 10))
    refuseAll('protocol', 'the message does not end with CRLF')
  const octets = octetsOf(transaction)
  if (extensions.size !== null && extensions.size > 0 && octets > extensions.size) {
    refuseAll('size', `the message of ${octets} octets is over the size limit of the peer, ${extensions.size}`)
  }
  if (needsSmtpUtf8(transaction) && !extensions.smtpUtf8)
    refuseAll('smtputf8', 'the peer does not offer SMTPUTF8, which this message needs')
  if (transaction.needs8bit && !extensions.eightBitMime)
    refuseAll('eightbitmime', 'the peer does not offer 8BITMIME, which this message needs')
}

/** Size of the whole message. */
export const octetsOf = ({ fieldsOnTop, data }: Transaction) => (fieldsOnTop?.length ?? 0) + data.length

/** MAIL with the parameters of RFC 1870, 6152 and 6531 that the peer supports. */
export function mailCommand(transaction: Transaction, extensions: Extensions): string {
  const size = extensions.size === null ? '' : ` SIZE=${octetsOf(transaction)}`
  const body = transaction.needs8bit ? ' BODY=8BITMIME' : ''
  const utf8 = needsSmtpUtf8(transaction) ? ' SMTPUTF8' : ''
  return `MAIL FROM:<${transaction.returnPath}>${size}${body}${utf8}`
}

function needsSmtpUtf8({ needsSmtpUtf8, returnPath, recipients }: Transaction): boolean {
  return needsSmtpUtf8 || !isAscii(returnPath) || !recipients.every(isAscii)
}

const isAscii = (text: string) => /^[\x00-\x7f]*$/.test(text)

/** No line end, space or bracket, so that an address cannot become a second command or parameter; 512 keeps within the line length. */
const isFitForCommand = (text: string) => text.length <= 512 && !/[\x00-\x20<>\x7f-\x9f\u2028\u2029]/.test(text)
