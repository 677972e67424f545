/**
 * The state of one transaction, and the meaning of its replies for its recipients (RFC 5321 section 3.3); independent of sockets.
 * Promises: each recipient gets exactly one result; `unknown` only after the final dot was handed to the network.
 */
import type { Break } from './channel.ts'
import { openTranscript, type Transcript } from './transcript.ts'
import type { Extensions, Failure, RecipientResult, Stage, Transaction, TransactionResult } from './types.ts'

export interface Turn {
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

export function openTurn(transaction: Transaction, answer: Turn['answer']): Turn {
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
export function noteTimes({ transcript, repliedMs }: Turn): void {
  const times = Object.entries(repliedMs).map(([stage, ms]) => `${stage} after ${Math.round(ms)} ms`)
  if (times.length > 0) transcript.note(`replies: ${times.join(', ')}`)
}

export function isOpen(turn: Turn): boolean {
  return turn.results.includes(undefined)
}

/** Gives every open recipient the same result. */
export function giveAll(turn: Turn, result: RecipientResult): void {
  for (let index = 0; index < turn.results.length; index++) turn.results[index] ??= result
}

function failureOf(turn: Turn, stage: Stage, reason: Break): Failure {
  const failure: Failure = { stage, kind: reason.kind, reply: reason.reply, message: reason.message, transcript: '' }
  turn.failures.push(failure)
  return failure
}

/** The connection ended during this transaction. A reply that ended it can concern only the transaction being answered (`isFirst`). */
export function breakTurn(turn: Turn, reason: Break, isFirst: boolean): void {
  if (turn.isBegun) turn.transcript.note(reason.message)
  if (isFirst && turn.isBegun && reason.reply) {
    giveAll(turn, { state: 'refused', stage: turn.stage, reply: reason.reply })
    return
  }
  if (isFirst && reason.kind === 'protocol' && !turn.isDotWritten) forgetReplies(turn)
  const failure = failureOf(turn, turn.stage, isFirst ? reason : asLostConnection(reason))
  giveAll(turn, { state: turn.isDotWritten ? 'unknown' : 'failed', failure })
}

/** Out of sequence, a refusal may have been the reply to another command. The message was not sent, so a retry is safe. */
function forgetReplies(turn: Turn): void {
  for (let index = 0; index < turn.results.length; index++) if (turn.results[index]?.state === 'refused') turn.results[index] = undefined
}

/** For this transaction, the end of another one means only a lost connection, or (421) that the peer closes it for all. */
function asLostConnection({ kind, message, reply }: Break): Break {
  if (kind === 'aborted') return { kind, message }
  return reply?.code === 421 ? { kind: 'dropped', message, reply } : { kind: 'dropped', message }
}

/** Refuses, before any command, a message that the peer cannot accept or that would break out of a command. */
export function checkTurn(turn: Turn, extensions: Extensions): void {
  const { transaction } = turn
  const refuse = (index: number, kind: Failure['kind'], message: string, stage: Stage = 'mail') => {
    turn.results[index] ??= { state: 'failed', failure: failureOf(turn, stage, { kind, message }) }
  }
  const refuseAll = (kind: Failure['kind'], message: string) => {
    if (isOpen(turn)) giveAll(turn, { state: 'failed', failure: failureOf(turn, 'mail', { kind, message }) })
  }
  const { data, recipients, returnPath } = transaction
  if (!isFitForCommand(returnPath)) refuseAll('protocol', 'the return path is not fit for an SMTP command')
  recipients.forEach((recipient, index) => {
    if (recipient === '' || !isFitForCommand(recipient)) refuse(index, 'protocol', 'the address is not fit for an SMTP command', 'rcpt')
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
