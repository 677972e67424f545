/** A mail server based on an independent library (smtp-server). It keeps its messages and may delay the final reply. */
import { SMTPServer } from 'smtp-server'
import { testCertificate } from './certificate.ts'

export interface PeerMessage {
  recipients: string[]
  octets: Buffer
  secure: boolean
  /** Monotonic time at which the last octet of content arrived. */
  atMs: number
}

export interface Peer extends AsyncDisposable {
  readonly port: number
  readonly messages: PeerMessage[]
}

export interface PeerOptions {
  /** Delay of the reply to the content. */
  replyAfterMs?: number
  starttls?: boolean
  host?: string
  /** 0 chooses any free port. */
  port?: number
}

export async function startPeer({ replyAfterMs = 0, starttls = false, host = '127.0.0.1', port = 0 }: PeerOptions = {}): Promise<Peer> {
  const messages: PeerMessage[] = []
  const server = new SMTPServer({
    ...testCertificate,
    authOptional: true,
    disabledCommands: starttls ? ['AUTH'] : ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    closeTimeout: 100,
    onData(stream, session, done) {
      const parts: Buffer[] = []
      stream.on('data', (part: Buffer) => parts.push(part))
      stream.on('end', () => {
        const recipients = session.envelope.rcptTo.map((one) => one.address)
        messages.push({ recipients, octets: Buffer.concat(parts), secure: session.secure, atMs: performance.now() })
        setTimeout(done, replyAfterMs)
      })
    },
  })
  // A connection may end at any moment, because the test kills the other side.
  server.on('error', () => {})
  const listening = await new Promise<number>((resolve, reject) => {
    server.once('error', reject)
    const tcp = server.listen(port, host, () => resolve((tcp.address() as { port: number }).port))
  })
  return {
    port: listening,
    messages,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  }
}
