/** Short forms for the tests of the SMTP client. */
import { systemClock } from '#base'
import { type ConnectOptions, type ConnectResult, connect, type SmtpConnection, type Transaction, type TransactionResult } from '#smtp'

export function tryConnect(peer: { port: number }, options: Partial<ConnectOptions> = {}): Promise<ConnectResult> {
  return connect({
    peer: { address: '127.0.0.1', port: peer.port, host: 'mx.example.test' },
    ehloName: 'us.test',
    tls: 'opportunistic',
    clock: systemClock,
    ...options,
  })
}

export async function open(peer: { port: number }, options: Partial<ConnectOptions> = {}): Promise<SmtpConnection> {
  const result = await tryConnect(peer, options)
  if (!result.ok) throw new Error(`${result.failure.message}\n${result.failure.transcript}`)
  return result.connection
}

export function message(changes: Partial<Transaction> = {}): Transaction {
  return {
    returnPath: 'bounce@us.test',
    recipients: ['a@x.test'],
    data: Buffer.from('Subject: x\r\n\r\nbody\r\n'),
    needs8bit: false,
    needsSmtpUtf8: false,
    mayCommitTransaction: () => true,
    ...changes,
  }
}

/** Each recipient's result in two or three words: `accepted 250`, `refused rcpt 550`, `unknown final dropped`. */
export function outcomes(result: TransactionResult): string[] {
  return result.recipients.map((one) => {
    if (one.state === 'accepted') return `accepted ${one.reply.code}`
    if (one.state === 'refused') return `refused ${one.stage} ${one.reply.code}`
    return `${one.state} ${one.failure.stage} ${one.failure.kind}`
  })
}
