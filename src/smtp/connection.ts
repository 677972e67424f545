/**
 * Sequential transactions over an open connection. With PIPELINING, a transaction's commands leave in one write, and those of the next
 * directly after the previous final dot (RFC 2920 section 3.1): a message costs one round trip. Promises: `transact` always resolves;
 * after a reply that makes the rest pointless, no more of the message is sent; after a reply out of sequence the connection closes.
 */
import type { Clock } from '#base'
import type { Hello } from './ehlo-extensions.ts'
import {
  checkPending,
  failTransaction,
  isOpen,
  mailCommand,
  octetsOf,
  openPendingTransaction,
  type PendingTransaction,
  recordTimes,
  setAllResults,
} from './pending-transaction.ts'
import type { Channel, ConnectionLost } from './reply-channel.ts'
import { openTranscript } from './transcript.ts'
import type { Peer, Reply, SmtpConnection, SmtpLimits, Stage, TlsFacts, Transaction, TransactionResult } from './types.ts'

export interface ConnectionDeps {
  peer: Peer
  channel: Channel
  tls: TlsFacts | null
  hello: Hello
  limits: SmtpLimits
  clock: Clock
  /** The conversation so far; it starts the first transaction's transcript. */
  beginning: string
}

/** Up to this size, content leaves in one write together with its dot. */
const oneWriteOctets = 262_144
const blockOctets = 65_536
const finalDot = Buffer.from('.\r\n')

export function openSmtpConnection({ peer, channel, tls, hello, limits, clock, beginning }: ConnectionDeps): SmtpConnection {
  const { extensions } = hello
  /** Started transactions first, in the order of their commands. */
  const allPending: PendingTransaction[] = []
  let isUsable = true
  let isQuitting = false
  let isFirstTurn = true
  /** The peer still holds an abandoned transaction. */
  let mustReset = false
  /** Resumes sending content when the peer has read a block. */
  let drained: (() => void) | undefined

  const ended = (reason: ConnectionLost) => {
    isUsable = false
    drained = undefined
    const left = allPending.splice(0)
    left.forEach((pending, index) => {
      failTransaction(pending, reason, index === 0)
      answer(pending)
    })
  }
  channel.listen({ ended, drained: () => drained?.() })
  if (channel.broken) ended(channel.broken)

  const answer = (pending: PendingTransaction) => {
    recordTimes(pending)
    const transcript = pending.transcript.text
    for (const failure of pending.failures) failure.transcript = transcript
    pending.answer({
      // An answered transaction has a result for each recipient.
      recipients: pending.results.filter((result) => result !== undefined),
      transcript,
      durationMs: pending.isBegun ? clock.monotonicMs() - pending.beganMs : 0,
      repliedMs: pending.repliedMs,
    })
  }

  /** The peer has completed this transaction. */
  const finish = (pending: PendingTransaction) => {
    if (pending.isMailOpen) mustReset = true
    allPending.shift()
    answer(pending)
    begin()
  }

  const replyOutOfSequence = (pending: PendingTransaction, stage: Stage, reply: Reply) => {
    pending.stage = stage
    channel.end({ kind: 'protocol', message: `reply to ${stage.toUpperCase()} out of sequence: ${reply.text.slice(0, 200)}` })
  }

  /** Expects the reply of one command. 421 ends the connection at any stage (RFC 5321 section 3.8): no further reply will come. */
  const expectReply = (pending: PendingTransaction, stage: Stage, withinMs: number, take: (reply: Reply) => void) => {
    channel.expect(`the reply to ${stage.toUpperCase()}`, withinMs, (reply) => {
      pending.stage = stage
      pending.repliedMs[stage] = clock.monotonicMs() - pending.beganMs
      pending.transcript.server(reply.text)
      if (reply.code === 421) channel.end({ kind: 'reply', message: `the peer closed the connection: ${reply.text}`, reply })
      else take(reply)
    })
  }

  // Each of these functions returns its commands, so that they can leave in the same write as the preceding ones.

  const say = (pending: PendingTransaction, line: string) => {
    pending.transcript.client(line)
    return `${line}\r\n`
  }

  const sendReset = (pending: PendingTransaction, then: () => void) => {
    mustReset = false
    expectReply(pending, 'mail', limits.commandMs, (reply) => (reply.code < 300 ? then() : replyOutOfSequence(pending, 'mail', reply)))
    return say(pending, 'RSET')
  }

  const sendMail = (pending: PendingTransaction, then: () => void) => {
    expectReply(pending, 'mail', limits.commandMs, (reply) => {
      if (reply.code >= 400) setAllResults(pending, { state: 'refused', stage: 'mail', reply })
      else if (reply.code >= 300) return replyOutOfSequence(pending, 'mail', reply)
      else pending.isMailOpen = true
      pending.stage = 'rcpt'
      then()
    })
    return say(pending, mailCommand(pending.transaction, extensions))
  }

  const sendRecipient = (pending: PendingTransaction, index: number, then: () => void) => {
    expectReply(pending, 'rcpt', limits.commandMs, (reply) => {
      if (reply.code >= 400) pending.results[index] ??= { state: 'refused', stage: 'rcpt', reply }
      else if (reply.code >= 300) return replyOutOfSequence(pending, 'rcpt', reply)
      then()
    })
    return say(pending, `RCPT TO:<${pending.transaction.recipients[index] ?? ''}>`)
  }

  const sendData = (pending: PendingTransaction) => {
    expectReply(pending, 'data', limits.dataMs, (reply) => {
      if (reply.code < 300) return replyOutOfSequence(pending, 'data', reply)
      if (reply.code < 400) return sendContent(pending)
      setAllResults(pending, { state: 'refused', stage: 'data', reply })
      finish(pending)
    })
    return say(pending, 'DATA')
  }

  /** Starts the next transaction if its commands can be sent now; returns them. */
  const sendNext = (): string => {
    const pending = allPending.find((one) => !one.isBegun)
    if (!pending || channel.broken) return ''
    const before = allPending[0]
    if (before !== pending && !(extensions.pipelining && before?.isDotWritten && allPending[1] === pending)) return ''
    pending.isBegun = true
    pending.beganMs = clock.monotonicMs()
    if (isFirstTurn) pending.transcript = openTranscript(beginning)
    isFirstTurn = false
    return extensions.pipelining ? sendPipelined(pending) : sendInSequence(pending)
  }

  const openIndexes = (pending: PendingTransaction) => [...pending.results.keys()].filter((index) => pending.results[index] === undefined)

  const sendPipelined = (pending: PendingTransaction): string => {
    const emptyBuffer = () => {}
    let text = mustReset ? sendReset(pending, emptyBuffer) : ''
    text += sendMail(pending, emptyBuffer)
    const indexes = openIndexes(pending)
    for (const index of indexes)
      text += sendRecipient(pending, index, index === indexes.at(-1) ? () => (pending.stage = 'data') : emptyBuffer)
    return text + sendData(pending)
  }

  /** Without PIPELINING: every command waits for the previous reply, and no pointless command is sent. */
  const sendInSequence = (pending: PendingTransaction): string => {
    const write = (text: string) => channel.write(Buffer.from(text))
    const waiting = openIndexes(pending)
    const next = () => {
      if (!isOpen(pending)) return finish(pending)
      const index = waiting.shift()
      pending.stage = index === undefined ? 'data' : 'rcpt'
      write(index === undefined ? sendData(pending) : sendRecipient(pending, index, next))
    }
    return mustReset ? sendReset(pending, () => write(sendMail(pending, next))) : sendMail(pending, next)
  }

  const begin = () => {
    const text = sendNext()
    if (text !== '') channel.write(Buffer.from(text))
    else if (isQuitting && allPending.length === 0) channel.quit()
  }

  const sendContent = (pending: PendingTransaction) => {
    pending.stage = 'content'
    if (!isOpen(pending)) {
      // RFC 2920 section 3.1: the peer replied 354 although it accepted no recipient. Only the dot is sent, and the results of RCPT stand.
      sendDot(pending, [])
      return
    }
    const { fieldsOnTop, data } = pending.transaction
    pending.transcript.client(`<${octetsOf(pending.transaction)} octets of message>`)
    if (data.length <= oneWriteOctets) finishContent(pending, fieldsOnTop ? [fieldsOnTop, data] : [data])
    else sendBlocks(pending)
  }

  const sendBlocks = (pending: PendingTransaction) => {
    const { fieldsOnTop, data } = pending.transaction
    let at = 0
    if (fieldsOnTop) channel.write(fieldsOnTop)
    drained = () => {
      channel.allow('the peer to accept content', limits.blockMs)
      let isTaken = true
      while (isTaken && data.length - at > blockOctets) {
        isTaken = channel.write(data.subarray(at, at + blockOctets))
        at += blockOctets
      }
      if (!isTaken || channel.broken) return
      drained = undefined
      finishContent(pending, [data.subarray(at)])
    }
    drained()
  }

  /** The last moment at which this message may still be withheld. */
  const finishContent = (pending: PendingTransaction, last: readonly Buffer[]) => {
    if (mayCommit(pending.transaction)) {
      sendDot(pending, last)
      return
    }
    const message = 'stopped before the final dot'
    failTransaction(pending, { kind: 'aborted', message }, true)
    // For the transactions behind it, this is only a lost connection.
    channel.end({ kind: 'dropped', message })
  }

  const sendDot = (pending: PendingTransaction, last: readonly Buffer[]) => {
    pending.stage = 'final'
    pending.isDotWritten = true
    pending.isMailOpen = false
    pending.transcript.client('.')
    expectReply(pending, 'final', limits.finalReplyMs, (reply) => {
      if (reply.code >= 300 && reply.code < 400) return replyOutOfSequence(pending, 'final', reply)
      setAllResults(pending, reply.code < 300 ? { state: 'accepted', reply } : { state: 'refused', stage: 'final', reply })
      finish(pending)
    })
    const next = sendNext()
    channel.write(...last, next === '' ? finalDot : Buffer.from(`.\r\n${next}`))
  }

  return {
    peer,
    tls,
    extensions,
    get secure() {
      return channel.secure
    },
    get usable() {
      return isUsable && !isQuitting
    },
    closed: channel.closed,
    transact(transaction: Transaction): Promise<TransactionResult> {
      return new Promise((resolve) => {
        const pending = openPendingTransaction(transaction, resolve)
        checkPending(pending, extensions)
        if (isOpen(pending) && (!isUsable || isQuitting))
          failTransaction(pending, channel.broken ?? { kind: 'dropped', message: 'the connection is closing' }, false)
        if (!isOpen(pending)) {
          answer(pending)
          return
        }
        allPending.push(pending)
        begin()
      })
    },
    quit() {
      isQuitting = true
      if (allPending.length === 0) channel.quit()
    },
    destroy() {
      channel.end({ kind: 'aborted', message: 'the connection was abandoned' })
    },
  }
}

function mayCommit(transaction: Transaction): boolean {
  try {
    return transaction.mayCommitTransaction()
  } catch {
    return false
  }
}
