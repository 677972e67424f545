/**
 * Sequential transactions over an open connection. With PIPELINING, a transaction's commands leave in one write, and those of the next
 * directly after the previous final dot (RFC 2920 section 3.1): a message costs one round trip. Promises: `transact` always resolves;
 * after a reply that makes the rest pointless, no more of the message is sent; after a reply out of sequence the connection closes.
 */
import type { Clock } from '#base'
import type { Break, Channel } from './channel.ts'
import type { Hello } from './extensions.ts'
import { openTranscript } from './transcript.ts'
import { breakTurn, checkTurn, giveAll, isOpen, mailCommand, noteTimes, octetsOf, openTurn, type Turn } from './turn.ts'
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

export function openConnection({ peer, channel, tls, hello, limits, clock, beginning }: ConnectionDeps): SmtpConnection {
  const { extensions } = hello
  /** Started transactions first, in the order of their commands. */
  const turns: Turn[] = []
  let isUsable = true
  let isQuitting = false
  let isFirstTurn = true
  /** The peer still holds an abandoned transaction. */
  let mustReset = false
  /** Resumes sending content when the peer has read a block. */
  let drained: (() => void) | undefined

  const ended = (reason: Break) => {
    isUsable = false
    drained = undefined
    const left = turns.splice(0)
    left.forEach((turn, index) => {
      breakTurn(turn, reason, index === 0)
      answer(turn)
    })
  }
  channel.listen({ ended, drained: () => drained?.() })
  if (channel.broken) ended(channel.broken)

  const answer = (turn: Turn) => {
    noteTimes(turn)
    const transcript = turn.transcript.text
    for (const failure of turn.failures) failure.transcript = transcript
    turn.answer({
      // An answered transaction has a result for each recipient.
      recipients: turn.results.filter((result) => result !== undefined),
      transcript,
      durationMs: turn.isBegun ? clock.monotonicMs() - turn.beganMs : 0,
      repliedMs: turn.repliedMs,
    })
  }

  /** The peer has completed this transaction. */
  const finish = (turn: Turn) => {
    if (turn.isMailOpen) mustReset = true
    turns.shift()
    answer(turn)
    begin()
  }

  const outOfStep = (turn: Turn, stage: Stage, reply: Reply) => {
    turn.stage = stage
    channel.end({ kind: 'protocol', message: `the reply to ${stage.toUpperCase()} is out of step: ${reply.text.slice(0, 200)}` })
  }

  /** Expects the reply of one command. 421 ends the connection at any stage (RFC 5321 section 3.8): no further reply will come. */
  const expectReply = (turn: Turn, stage: Stage, withinMs: number, take: (reply: Reply) => void) => {
    channel.expect(`the reply to ${stage.toUpperCase()}`, withinMs, (reply) => {
      turn.stage = stage
      turn.repliedMs[stage] = clock.monotonicMs() - turn.beganMs
      turn.transcript.server(reply.text)
      if (reply.code === 421) channel.end({ kind: 'reply', message: `the peer closes: ${reply.text}`, reply })
      else take(reply)
    })
  }

  // Each of these functions returns its commands, so that they can leave in the same write as the preceding ones.

  const say = (turn: Turn, line: string) => {
    turn.transcript.client(line)
    return `${line}\r\n`
  }

  const sayReset = (turn: Turn, then: () => void) => {
    mustReset = false
    expectReply(turn, 'mail', limits.commandMs, (reply) => (reply.code < 300 ? then() : outOfStep(turn, 'mail', reply)))
    return say(turn, 'RSET')
  }

  const sayMail = (turn: Turn, then: () => void) => {
    expectReply(turn, 'mail', limits.commandMs, (reply) => {
      if (reply.code >= 400) giveAll(turn, { state: 'refused', stage: 'mail', reply })
      else if (reply.code >= 300) return outOfStep(turn, 'mail', reply)
      else turn.isMailOpen = true
      turn.stage = 'rcpt'
      then()
    })
    return say(turn, mailCommand(turn.transaction, extensions))
  }

  const sayRecipient = (turn: Turn, index: number, then: () => void) => {
    expectReply(turn, 'rcpt', limits.commandMs, (reply) => {
      if (reply.code >= 400) turn.results[index] ??= { state: 'refused', stage: 'rcpt', reply }
      else if (reply.code >= 300) return outOfStep(turn, 'rcpt', reply)
      then()
    })
    return say(turn, `RCPT TO:<${turn.transaction.recipients[index] ?? ''}>`)
  }

  const sayData = (turn: Turn) => {
    expectReply(turn, 'data', limits.dataMs, (reply) => {
      if (reply.code < 300) return outOfStep(turn, 'data', reply)
      if (reply.code < 400) return sendContent(turn)
      giveAll(turn, { state: 'refused', stage: 'data', reply })
      finish(turn)
    })
    return say(turn, 'DATA')
  }

  /** Starts the next transaction if its commands can be sent now; returns them. */
  const sayNext = (): string => {
    const turn = turns.find((one) => !one.isBegun)
    if (!turn || channel.broken) return ''
    const before = turns[0]
    if (before !== turn && !(extensions.pipelining && before?.isDotWritten && turns[1] === turn)) return ''
    turn.isBegun = true
    turn.beganMs = clock.monotonicMs()
    if (isFirstTurn) turn.transcript = openTranscript(beginning)
    isFirstTurn = false
    return extensions.pipelining ? sayAtOnce(turn) : sayInTurn(turn)
  }

  const openIndexes = (turn: Turn) => [...turn.results.keys()].filter((index) => turn.results[index] === undefined)

  const sayAtOnce = (turn: Turn): string => {
    const nothing = () => {}
    let text = mustReset ? sayReset(turn, nothing) : ''
    text += sayMail(turn, nothing)
    const indexes = openIndexes(turn)
    for (const index of indexes) text += sayRecipient(turn, index, index === indexes.at(-1) ? () => (turn.stage = 'data') : nothing)
    return text + sayData(turn)
  }

  /** Without PIPELINING: every command waits for the previous reply, and no pointless command is sent. */
  const sayInTurn = (turn: Turn): string => {
    const write = (text: string) => channel.write(Buffer.from(text))
    const waiting = openIndexes(turn)
    const next = () => {
      if (!isOpen(turn)) return finish(turn)
      const index = waiting.shift()
      turn.stage = index === undefined ? 'data' : 'rcpt'
      write(index === undefined ? sayData(turn) : sayRecipient(turn, index, next))
    }
    return mustReset ? sayReset(turn, () => write(sayMail(turn, next))) : sayMail(turn, next)
  }

  const begin = () => {
    const text = sayNext()
    if (text !== '') channel.write(Buffer.from(text))
    else if (isQuitting && turns.length === 0) channel.quit()
  }

  const sendContent = (turn: Turn) => {
    turn.stage = 'content'
    if (!isOpen(turn)) {
      // RFC 2920 section 3.1: the peer replied 354 although it accepted no recipient. Only the dot is sent, and the results of RCPT stand.
      sendDot(turn, [])
      return
    }
    const { fieldsOnTop, data } = turn.transaction
    turn.transcript.client(`<${octetsOf(turn.transaction)} octets of message>`)
    if (data.length <= oneWriteOctets) finishContent(turn, fieldsOnTop ? [fieldsOnTop, data] : [data])
    else sendBlocks(turn)
  }

  const sendBlocks = (turn: Turn) => {
    const { fieldsOnTop, data } = turn.transaction
    let at = 0
    if (fieldsOnTop) channel.write(fieldsOnTop)
    drained = () => {
      channel.allow('a block of content', limits.blockMs)
      let isTaken = true
      while (isTaken && data.length - at > blockOctets) {
        isTaken = channel.write(data.subarray(at, at + blockOctets))
        at += blockOctets
      }
      if (!isTaken || channel.broken) return
      drained = undefined
      finishContent(turn, [data.subarray(at)])
    }
    drained()
  }

  /** The last moment at which this message may still be withheld. */
  const finishContent = (turn: Turn, last: readonly Buffer[]) => {
    if (mayFinish(turn.transaction)) {
      sendDot(turn, last)
      return
    }
    const message = 'stopped before the final dot'
    breakTurn(turn, { kind: 'aborted', message }, true)
    // For the transactions behind it, this is only a lost connection.
    channel.end({ kind: 'dropped', message })
  }

  const sendDot = (turn: Turn, last: readonly Buffer[]) => {
    turn.stage = 'final'
    turn.isDotWritten = true
    turn.isMailOpen = false
    turn.transcript.client('.')
    expectReply(turn, 'final', limits.finalReplyMs, (reply) => {
      if (reply.code >= 300 && reply.code < 400) return outOfStep(turn, 'final', reply)
      giveAll(turn, reply.code < 300 ? { state: 'accepted', reply } : { state: 'refused', stage: 'final', reply })
      finish(turn)
    })
    const next = sayNext()
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
        const turn = openTurn(transaction, resolve)
        checkTurn(turn, extensions)
        if (isOpen(turn) && (!isUsable || isQuitting))
          breakTurn(turn, channel.broken ?? { kind: 'dropped', message: 'the connection is closing' }, false)
        if (!isOpen(turn)) {
          answer(turn)
          return
        }
        turns.push(turn)
        begin()
      })
    },
    quit() {
      isQuitting = true
      if (turns.length === 0) channel.quit()
    },
    destroy() {
      channel.end({ kind: 'aborted', message: 'the connection was given up' })
    },
  }
}

function mayFinish(transaction: Transaction): boolean {
  try {
    return transaction.mayFinish()
  } catch {
    return false
  }
}
