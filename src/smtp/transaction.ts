/**
 * One mail transaction in the order of RFC 5321 section 3.3: RSET, MAIL, RCPT, DATA, content, final dot; with PIPELINING the commands
 * leave together (RFC 2920). Promises: each recipient gets exactly one result; `unknown` only after the final dot was handed to the
 * network; after a reply that makes the rest pointless, no more of the message is sent.
 */
import type { Clock } from '#base'
import { findMessageFault, isFitForCommand, mailCommand, octetsOf } from './mail-command.ts'
import type { Channel, ConnectionLost } from './reply-channel.ts'
import { openTranscript } from './transcript.ts'
import type { Extensions, Failure, RecipientResult, Reply, SmtpLimits, Stage, Transaction, TransactionResult } from './types.ts'

/** The transaction's view of its connection. */
export interface TransactionContext {
  readonly channel: Channel
  readonly extensions: Extensions
  readonly limits: SmtpLimits
  readonly clock: Clock
  /** Called right before the final dot: begins the next transaction, if there is one, and returns its commands for the same write. */
  beginNext(): string
  /** Called when the peer has completed this transaction, for `answer`. */
  finish(transaction: MailTransaction): void
}

/** Up to this size, content leaves in one write together with its dot. */
const oneWriteOctets = 262_144
const blockOctets = 65_536
const finalDot = Buffer.from('.\r\n')

/** A message on its way through one transaction. Methods named like a command return it, so that it can leave with the preceding ones. */
export class MailTransaction {
  readonly #message: Transaction
  readonly #context: TransactionContext
  readonly #resolve: (result: TransactionResult) => void
  /** For each recipient; undefined while open. */
  readonly #results: (RecipientResult | undefined)[]
  /** Failures of this transaction so far share its transcript, which is complete only at the end. */
  readonly #failures: Failure[] = []
  /** Time of the last reply of each stage, in ms after the beginning. */
  readonly #repliedMs: Partial<Record<Stage, number>> = {}
  #transcript = openTranscript()
  /** The reply awaited. */
  #stage: Stage = 'mail'
  #isBegun = false
  /** The final dot has been handed to the network: a lost connection now leaves the outcome unknown. */
  #isDotWritten = false
  #isMailOpen = false
  #beganMs = 0
  /** Without PIPELINING: the first recipient whose RCPT has not been sent. */
  #nextRecipient = 0
  /** Octets of content written in blocks; undefined unless further blocks remain. */
  #writtenOctets: number | undefined
  /** Otherwise a peer that reads a block just in time could hold the transaction for many hours. */
  #contentUntilMs = 0

  constructor(message: Transaction, context: TransactionContext, resolve: (result: TransactionResult) => void) {
    this.#message = message
    this.#context = context
    this.#resolve = resolve
    this.#results = message.recipients.map(() => undefined)
  }

  /** A recipient has no result yet. */
  get isOpen(): boolean {
    return this.#results.includes(undefined)
  }

  /** Its commands are being sent. */
  get isBegun(): boolean {
    return this.#isBegun
  }

  get isDotWritten(): boolean {
    return this.#isDotWritten
  }

  /** The peer holds a transaction that only RSET or the final dot ends. */
  get isMailOpen(): boolean {
    return this.#isMailOpen
  }

  /** Refuses, before any command, a message that the peer cannot accept or that would break out of a command. */
  check(): void {
    const { recipients, returnPath } = this.#message
    if (isFitForCommand(returnPath)) {
      recipients.forEach((recipient, index) => {
        if (recipient !== '' && isFitForCommand(recipient)) return
        const failure = this.#failureOf('rcpt', { kind: 'protocol', message: 'the address is not valid in an SMTP command' })
        this.#results[index] = { state: 'failed', failure }
      })
    }
    if (!this.isOpen) return
    const fault = findMessageFault(this.#message, this.#context.extensions)
    if (fault) this.#settle({ state: 'failed', failure: this.#failureOf('mail', fault) })
  }

  /**
   * Starts the transaction; returns its first commands. `mustReset`: the peer still holds an abandoned transaction. `beginning`: the
   * conversation so far, or empty.
   */
  begin(mustReset: boolean, beginning: string): string {
    const { clock, extensions } = this.#context
    this.#isBegun = true
    this.#beganMs = clock.monotonicMs()
    if (beginning !== '') this.#transcript = openTranscript(beginning)
    if (!extensions.pipelining) return mustReset ? this.#rset() : this.#mail()
    const last = this.#results.lastIndexOf(undefined)
    let commands = mustReset ? this.#rset() : ''
    commands += this.#mail()
    for (let index = 0; index <= last; index++) if (this.#results[index] === undefined) commands += this.#rcpt(index, index === last)
    return commands + this.#data()
  }

  #rset(): string {
    this.#expectReply('mail', this.#context.limits.commandMs, (reply) => {
      if (reply.code >= 300) this.#endOutOfSequence('mail', reply)
      else if (!this.#context.extensions.pipelining) this.#write(this.#mail())
    })
    return this.#line('RSET')
  }

  #mail(): string {
    this.#expectReply('mail', this.#context.limits.commandMs, (reply) => {
      if (reply.code >= 400) this.#settle({ state: 'refused', stage: 'mail', reply })
      else if (reply.code >= 300) return this.#endOutOfSequence('mail', reply)
      else this.#isMailOpen = true
      this.#stage = 'rcpt'
      this.#sendNextInSequence()
    })
    return this.#line(mailCommand(this.#message, this.#context.extensions))
  }

  #rcpt(index: number, isLast: boolean): string {
    this.#expectReply('rcpt', this.#context.limits.commandMs, (reply) => {
      if (reply.code >= 400) this.#results[index] ??= { state: 'refused', stage: 'rcpt', reply }
      else if (reply.code >= 300) return this.#endOutOfSequence('rcpt', reply)
      if (isLast) this.#stage = 'data'
      this.#sendNextInSequence()
    })
    return this.#line(`RCPT TO:<${this.#message.recipients[index] ?? ''}>`)
  }

  /** Without PIPELINING: every command waits for the previous reply, and no pointless command is sent. */
  #sendNextInSequence(): void {
    if (this.#context.extensions.pipelining) return
    if (!this.isOpen) return this.#context.finish(this)
    const index = this.#results.indexOf(undefined, this.#nextRecipient)
    this.#nextRecipient = index + 1
    this.#stage = index < 0 ? 'data' : 'rcpt'
    this.#write(index < 0 ? this.#data() : this.#rcpt(index, false))
  }

  #data(): string {
    this.#expectReply('data', this.#context.limits.dataMs, (reply) => {
      if (reply.code < 300) return this.#endOutOfSequence('data', reply)
      if (reply.code < 400) return this.#sendContent()
      this.#settle({ state: 'refused', stage: 'data', reply })
      this.#context.finish(this)
    })
    return this.#line('DATA')
  }

  #sendContent(): void {
    this.#stage = 'content'
    // RFC 2920 section 3.1: the peer replied 354 although it accepted no recipient. Only the dot is sent, and the results of RCPT stand.
    if (!this.isOpen) return this.#sendDot([])
    const { fieldsOnTop, data } = this.#message
    const octets = octetsOf(this.#message)
    const { channel, clock, limits } = this.#context
    this.#contentUntilMs = clock.monotonicMs() + limits.contentMs + (octets / limits.minOctetsPerSecond) * 1000
    this.#transcript.client(`<${octets} octets of message>`)
    if (data.length <= oneWriteOctets) return this.#finishContent(fieldsOnTop ? [fieldsOnTop, data] : [data])
    if (fieldsOnTop) channel.write(fieldsOnTop)
    this.#writtenOctets = 0
    this.resume()
  }

  /** Sends further blocks of content, because the peer has read those before. */
  resume(): void {
    if (this.#writtenOctets === undefined) return
    const { channel, clock, limits } = this.#context
    const { data } = this.#message
    channel.allow('the peer to accept content', Math.min(limits.blockMs, this.#contentUntilMs - clock.monotonicMs()))
    let at = this.#writtenOctets
    let isTaken = true
    while (isTaken && data.length - at > blockOctets) {
      isTaken = channel.write(data.subarray(at, at + blockOctets))
      at += blockOctets
    }
    this.#writtenOctets = at
    if (!isTaken || channel.broken) return
    this.#writtenOctets = undefined
    this.#finishContent([data.subarray(at)])
  }

  /** The last moment at which this message may still be withheld. */
  #finishContent(last: readonly Buffer[]): void {
    if (mayCommit(this.#message)) return this.#sendDot(last)
    const message = 'stopped before the final dot'
    this.fail({ kind: 'aborted', message }, true)
    // For the transactions behind it, this is only a lost connection.
    this.#context.channel.end({ kind: 'dropped', message })
  }

  #sendDot(last: readonly Buffer[]): void {
    const { channel, limits } = this.#context
    this.#stage = 'final'
    this.#isDotWritten = true
    this.#isMailOpen = false
    this.#transcript.client('.')
    this.#expectReply('final', limits.finalReplyMs, (reply) => {
      if (reply.code >= 300 && reply.code < 400) return this.#endOutOfSequence('final', reply)
      this.#settle(reply.code < 300 ? { state: 'accepted', reply } : { state: 'refused', stage: 'final', reply })
      this.#context.finish(this)
    })
    const next = this.#context.beginNext()
    channel.write(...last, next === '' ? finalDot : Buffer.from(`.\r\n${next}`))
  }

  #line(command: string): string {
    this.#transcript.client(command)
    return `${command}\r\n`
  }

  #write(commands: string): void {
    this.#context.channel.write(Buffer.from(commands))
  }

  /** Expects the reply of one command. 421 ends the connection at any stage (RFC 5321 section 3.8): no further reply will come. */
  #expectReply(stage: Stage, withinMs: number, take: (reply: Reply) => void): void {
    const { channel, clock } = this.#context
    channel.expect(`the reply to ${stage.toUpperCase()}`, withinMs, (reply) => {
      this.#stage = stage
      this.#repliedMs[stage] = clock.monotonicMs() - this.#beganMs
      this.#transcript.server(reply.text)
      if (reply.code === 421) channel.end({ kind: 'reply', message: `the peer closed the connection: ${reply.text}`, reply })
      else take(reply)
    })
  }

  #endOutOfSequence(stage: Stage, reply: Reply): void {
    this.#stage = stage
    this.#context.channel.end({
      kind: 'protocol',
      message: `reply to ${stage.toUpperCase()} out of sequence: ${reply.text.slice(0, 200)}`,
    })
  }

  /** Gives every open recipient the same result. */
  #settle(result: RecipientResult): void {
    for (let index = 0; index < this.#results.length; index++) this.#results[index] ??= result
  }

  #failureOf(stage: Stage, reason: ConnectionLost): Failure {
    const failure: Failure = { stage, kind: reason.kind, reply: reason.reply, message: reason.message, transcript: '' }
    this.#failures.push(failure)
    return failure
  }

  /** The connection ended during this transaction. A reply that ended it can concern only the transaction being answered (`isFirst`). */
  fail(reason: ConnectionLost, isFirst: boolean): void {
    if (this.#isBegun) this.#transcript.note(reason.message)
    if (isFirst && this.#isBegun && reason.reply) {
      this.#settle({ state: 'refused', stage: this.#stage, reply: reason.reply })
      return
    }
    if (isFirst && reason.kind === 'protocol' && !this.#isDotWritten) this.#discardRefusals()
    const failure = this.#failureOf(this.#stage, isFirst ? reason : asLostConnection(reason))
    this.#settle({ state: this.#isDotWritten ? 'unknown' : 'failed', failure })
  }

  /** Out of sequence, a refusal may have been the reply to another command. The message was not sent, so a retry is safe. */
  #discardRefusals(): void {
    for (let index = 0; index < this.#results.length; index++)
      if (this.#results[index]?.state === 'refused') this.#results[index] = undefined
  }

  /** Reports the results, when each recipient has one. */
  answer(): void {
    const times = Object.entries(this.#repliedMs).map(([stage, ms]) => `${stage} after ${Math.round(ms)} ms`)
    if (times.length > 0) this.#transcript.note(`replies: ${times.join(', ')}`)
    const transcript = this.#transcript.text
    for (const failure of this.#failures) failure.transcript = transcript
    this.#resolve({
      recipients: this.#results.filter((result) => result !== undefined),
      transcript,
      durationMs: this.#isBegun ? this.#context.clock.monotonicMs() - this.#beganMs : 0,
      repliedMs: this.#repliedMs,
    })
  }
}

/** For this transaction, the end of another one means only a lost connection, or (421) that the peer closes it for all. */
function asLostConnection({ kind, message, reply }: ConnectionLost): ConnectionLost {
  if (kind === 'aborted') return { kind, message }
  return reply?.code === 421 ? { kind: 'dropped', message, reply } : { kind: 'dropped', message }
}

function mayCommit(message: Transaction): boolean {
  try {
    return message.mayCommitTransaction()
  } catch {
    return false
  }
}
