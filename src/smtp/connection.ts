/**
 * Transactions over one connection, in order. With PIPELINING the envelope is one write, and that of the next transaction goes right
 * behind the final dot of the one before (RFC 2920 section 3.1).
 */
import type { Clock } from '#base'
import type { Broken, Channel } from './channel.ts'
import { type Transcript, transcript } from './zz-reader.ts'
import type { Extensions, Failure, Peer, RecipientResult, Reply, SmtpConnection, SmtpLimits, Stage, Transaction, TransactionResult } from './types.ts'

/** Content up to this size is one write; larger content waits for the peer piece by piece. */
const oneWriteOctets = 262_144
const pieceOctets = 65_536
/** What must not appear in an address that is pasted into a command. */
const unsafe = /[\r\n\0 <>]/

export interface ConnectionFacts {
  channel: Channel
  peer: Peer
  secure: boolean
  extensions: Extensions
  limits: SmtpLimits
  clock: Clock
  /** The conversation so far; told with the first transaction. */
  setUp: string
}

interface Entry {
  transaction: Transaction
  said: Transcript
  envelopeWritten: boolean
  beganMs: number
  resolve: (result: TransactionResult) => void
}

const isReply = (answer: Reply | Broken): answer is Reply => 'code' in answer

export function openConnection(facts: ConnectionFacts): SmtpConnection {
  const { channel, peer, secure, extensions, limits, clock } = facts
  const queue: Entry[] = []
  let setUp = facts.setUp
  let running = false
  let ending = false
  /** The last envelope was refused with its transaction still open at the peer. */
  let needsReset = false

  const end = () => {
    ending = true
    channel.destroy()
  }

  const failure = (entry: Entry, stage: Stage, kind: Failure['kind'], message: string): Failure => ({ stage, kind, message, transcript: entry.said.toString() })

  const hear = (entry: Entry, answer: Reply | Broken) => {
    if (isReply(answer)) entry.said.heard(answer.text)
    else entry.said.note(answer.message)
    return answer
  }

  const envelopeLines = ({ returnPath, recipients, data, needs8bit, needsSmtpUtf8 }: Transaction): string[] => {
    const size = extensions.size === null ? '' : ` SIZE=${data.length}`
    const eightBit = needs8bit && extensions.eightBitMime ? ' BODY=8BITMIME' : ''
    const utf8 = needsSmtpUtf8 ? ' SMTPUTF8' : ''
    return [`MAIL FROM:<${returnPath}>${size}${eightBit}${utf8}`, ...recipients.map((recipient) => `RCPT TO:<${recipient}>`), 'DATA']
  }

  /** Says the whole envelope in one write; only with PIPELINING. */
  const writeEnvelope = (entry: Entry) => {
    const lines = [...(needsReset ? ['RSET'] : []), ...envelopeLines(entry.transaction)]
    for (const line of lines) entry.said.said(line)
    entry.envelopeWritten = true
    channel.write(`${lines.join('\r\n')}\r\n`)
  }

  const unsupported = ({ data, needs8bit, needsSmtpUtf8, returnPath, recipients }: Transaction): { kind: Failure['kind']; message: string } | undefined => {
    if ([returnPath, ...recipients].some((address) => unsafe.test(address))) return { kind: 'protocol', message: 'an address cannot be said in SMTP' }
    if (extensions.size !== null && data.length > extensions.size) return { kind: 'unsupported', message: `the message has ${data.length} octets; the server's size limit is ${extensions.size}` }
    if (needsSmtpUtf8 && !extensions.smtpUtf8) return { kind: 'unsupported', message: 'the message needs SMTPUTF8, which the server does not offer' }
    if (needs8bit && !extensions.eightBitMime && !needsSmtpUtf8) return { kind: 'unsupported', message: 'the message needs 8BITMIME, which the server does not offer' }
    return undefined
  }

  const perform = async (entry: Entry): Promise<RecipientResult[]> => {
    const { transaction, said } = entry
    const all = (result: RecipientResult): RecipientResult[] => transaction.recipients.map(() => result)
    const failed = (stage: Stage, broken: { kind: Failure['kind']; message: string }): RecipientResult => ({ state: 'failed', failure: failure(entry, stage, broken.kind, broken.message) })
    const outOfPlace = (stage: Stage, reply: Reply): RecipientResult => {
      end()
      return failed(stage, { kind: 'protocol', message: `an answer ${reply.code} out of place` })
    }

    const lacking = unsupported(transaction)
    if (lacking) return all(failed('mail', lacking))
    if (channel.broken) return all(failed('mail', channel.broken))
    if (channel.hasReply && !entry.envelopeWritten) {
      // A goodbye said while nothing was asked: the connection's end, not this message's.
      end()
      return all(failed('mail', { kind: 'dropped', message: 'the server ended the connection while it was idle' }))
    }

    const lines = envelopeLines(transaction)
    const ask = async (stage: Stage, line: string, ms: number): Promise<Reply | Broken> => {
      if (!extensions.pipelining) {
        said.said(line)
        channel.write(`${line}\r\n`)
      }
      const answer = hear(entry, await channel.reply(ms))
      if (isReply(answer) && answer.code === 421) ending = true
      return answer
    }
    const resetFirst = needsReset
    if (extensions.pipelining && !entry.envelopeWritten) writeEnvelope(entry)
    if (resetFirst) {
      const reset = await ask('mail', 'RSET', limits.commandMs)
      if (!isReply(reset)) return all(failed('mail', reset))
      needsReset = false
      if (ending) return all({ state: 'refused', stage: 'mail', reply: reset })
    }

    // MAIL
    const mail = await ask('mail', lines[0] as string, limits.commandMs)
    if (!isReply(mail)) return all(failed('mail', mail))
    if (ending) return all({ state: 'refused', stage: 'mail', reply: mail })
    const mailAccepted = mail.code === 250
    if (!mailAccepted && mail.code < 400) return all(outOfPlace('mail', mail))
    if (!mailAccepted && !extensions.pipelining) return all({ state: 'refused', stage: 'mail', reply: mail })

    // RCPT
    const results: (RecipientResult | undefined)[] = []
    for (let index = 0; index < transaction.recipients.length; index++) {
      const answer = await ask('rcpt', lines[index + 1] as string, limits.commandMs)
      if (!isReply(answer)) return transaction.recipients.map((_, at) => results[at] ?? failed('rcpt', answer))
      if (ending) return transaction.recipients.map((_, at) => results[at] ?? { state: 'refused', stage: 'rcpt', reply: answer })
      if (!mailAccepted) results.push({ state: 'refused', stage: 'mail', reply: mail })
      else if (answer.code >= 400) results.push({ state: 'refused', stage: 'rcpt', reply: answer })
      else if (answer.code === 250 || answer.code === 251) results.push(undefined)
      else return all(outOfPlace('rcpt', answer))
    }
    const wanted = results.some((result) => result === undefined)
    const open = (result: RecipientResult): RecipientResult[] => transaction.recipients.map((_, at) => results[at] ?? result)
    if (!wanted && !extensions.pipelining) {
      needsReset = true
      return open(failed('rcpt', { kind: 'protocol', message: 'nobody was accepted' }))
    }

    // DATA
    const data = await ask('data', 'DATA', limits.dataMs)
    if (!isReply(data)) return open(failed('data', data))
    if (ending) return open({ state: 'refused', stage: 'data', reply: data })
    if (data.code !== 354) {
      if (data.code < 400) return open(outOfPlace('data', data))
      needsReset = mailAccepted
      return open({ state: 'refused', stage: 'data', reply: data })
    }
    if (!wanted) {
      // RFC 2920 section 3.1: DATA was taken although nobody was; an empty message ends it.
      said.said('.')
      channel.write('.\r\n')
      const answer = hear(entry, await channel.reply(limits.finalReplyMs))
      if (!isReply(answer)) ending = true
      return open(failed('data', { kind: 'protocol', message: 'nobody was accepted' }))
    }

    // content
    const stopped = await writeContent(entry)
    if (stopped) return open(failed('content', stopped))
    const last = hear(entry, await channel.reply(limits.finalReplyMs))
    if (!isReply(last)) return open({ state: 'unknown', failure: failure(entry, 'final', last.kind, `${last.message} after the message was complete`) })
    if (last.code === 421) ending = true
    if (last.code >= 200 && last.code < 300) return open({ state: 'accepted', reply: last })
    if (last.code >= 400) return open({ state: 'refused', stage: 'final', reply: last })
    end()
    return open({ state: 'unknown', failure: failure(entry, 'final', 'protocol', `an answer ${last.code} out of place after the message was complete`) })
  }

  const writeContent = async (entry: Entry): Promise<{ kind: Failure['kind']; message: string } | undefined> => {
    const { data, mayFinish } = entry.transaction
    const { socket } = channel
    let written = 0
    if (data.length > oneWriteOctets) {
      for (; data.length - written > pieceOctets; written += pieceOctets) {
        if (!channel.write(data.subarray(written, written + pieceOctets))) {
          const broken = await channel.drained(limits.blockMs)
          if (broken) return broken
        }
      }
    }
    if (channel.broken) return channel.broken
    if (!mayFinish()) {
      end()
      entry.said.note('given up before the final dot: the lease was lost')
      return { kind: 'aborted', message: 'the lease was lost before the final dot' }
    }
    entry.said.said(`<${data.length} octets of message>`)
    entry.said.said('.')
    socket.cork()
    channel.write(written === 0 ? data : data.subarray(written))
    channel.write('.\r\n')
    const next = queue[1]
    if (next && extensions.pipelining && !ending && !unsupported(next.transaction)) writeEnvelope(next)
    socket.uncork()
    return undefined
  }

  const run = async () => {
    running = true
    for (let entry = queue[0]; entry; entry = queue[0]) {
      const recipients = await perform(entry)
      queue.shift()
      entry.resolve({ recipients, transcript: entry.said.toString(), durationMs: clock.monotonicMs() - entry.beganMs, secure })
      if (ending) {
        channel.destroy()
      }
    }
    running = false
  }

  return {
    peer,
    secure,
    extensions,
    get usable() {
      return !ending && channel.broken === undefined
    },
    transact(transaction) {
      return new Promise((resolve) => {
        queue.push({ transaction, said: transcript(setUp), envelopeWritten: false, beganMs: clock.monotonicMs(), resolve })
        setUp = ''
        if (!running) void run()
      })
    },
    quit() {
      if (ending || channel.broken) {
        channel.destroy()
        return
      }
      ending = true
      channel.write('QUIT\r\n')
      channel.socket.end()
      clock.after(1000, () => channel.destroy())
    },
    destroy: end,
  }
}
