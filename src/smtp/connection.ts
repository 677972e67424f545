/**
 * Sequential transactions over an open connection. With PIPELINING, a transaction's commands leave in one write, and those of the next
 * directly after the previous final dot (RFC 2920 section 3.1): a message costs one round trip. Promises: `transact` always resolves;
 * after a reply out of sequence the connection closes.
 */
import type { Clock } from '#base'
import type { Hello } from './ehlo-extensions.ts'
import type { Channel, ConnectionLost } from './reply-channel.ts'
import { MailTransaction, type TransactionContext } from './transaction.ts'
import type { Extensions, Peer, SmtpConnection, SmtpLimits, TlsFacts, Transaction, TransactionResult } from './types.ts'

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

export class ClientConnection implements SmtpConnection {
  readonly peer: Peer
  readonly tls: TlsFacts | null
  readonly extensions: Extensions
  readonly closed: Promise<void>
  readonly #channel: Channel
  readonly #context: TransactionContext
  /** Started transactions first, in the order of their commands. */
  readonly #transactions: MailTransaction[] = []
  /** Empty once a transcript has it. */
  #beginning: string
  #isUsable = true
  #isQuitting = false
  /** The peer still holds an abandoned transaction. */
  #mustReset = false

  constructor({ peer, channel, tls, hello, limits, clock, beginning }: ConnectionDeps) {
    this.peer = peer
    this.tls = tls
    this.extensions = hello.extensions
    this.closed = channel.closed
    this.#channel = channel
    this.#beginning = beginning
    this.#context = {
      channel,
      extensions: hello.extensions,
      limits,
      clock,
      beginNext: () => this.#beginNext(),
      finish: (transaction) => this.#finish(transaction),
    }
    channel.listen({ ended: (reason) => this.#end(reason), drained: () => this.#transactions[0]?.resume() })
    if (channel.broken) this.#end(channel.broken)
  }

  get secure(): boolean {
    return this.#channel.secure
  }

  get usable(): boolean {
    return this.#isUsable && !this.#isQuitting
  }

  get awaitsFinalReply(): boolean {
    return this.#transactions[0]?.isDotWritten ?? false
  }

  transact(message: Transaction): Promise<TransactionResult> {
    return new Promise((resolve) => {
      const transaction = new MailTransaction(message, this.#context, resolve)
      transaction.check()
      if (transaction.isOpen && !this.usable)
        transaction.fail(this.#channel.broken ?? { kind: 'dropped', message: 'the connection is closing' }, false)
      if (!transaction.isOpen) {
        transaction.answer()
        return
      }
      this.#transactions.push(transaction)
      this.#continue()
    })
  }

  quit(): void {
    this.#isQuitting = true
    if (this.#transactions.length === 0) this.#channel.quit()
  }

  destroy(): void {
    this.#channel.end({ kind: 'aborted', message: 'the connection was abandoned' })
  }

  /** Begins the next transaction if its commands can be sent now; returns them. */
  #beginNext(): string {
    const next = this.#transactions.find((one) => !one.isBegun)
    if (!next || this.#channel.broken) return ''
    const first = this.#transactions[0]
    const isBehindDot = this.extensions.pipelining && first?.isDotWritten && this.#transactions[1] === next
    if (first !== next && !isBehindDot) return ''
    const mustReset = this.#mustReset
    const beginning = this.#beginning
    this.#mustReset = false
    this.#beginning = ''
    return next.begin(mustReset, beginning)
  }

  #continue(): void {
    const commands = this.#beginNext()
    if (commands !== '') this.#channel.write(Buffer.from(commands))
    else if (this.#isQuitting && this.#transactions.length === 0) this.#channel.quit()
  }

  /** The first transaction is complete. */
  #finish(transaction: MailTransaction): void {
    if (transaction.isMailOpen) this.#mustReset = true
    this.#transactions.shift()
    transaction.answer()
    this.#continue()
  }

  #end(reason: ConnectionLost): void {
    this.#isUsable = false
    for (const [index, transaction] of this.#transactions.splice(0).entries()) {
      transaction.fail(reason, index === 0)
      transaction.answer()
    }
  }
}
