/**
 * A test mail server with every octet under the test's control: each step's reply is sent unchanged, whole, in pieces, or not at all. Other
 * steps get the usual reply, so that a test names only the faults.
 */
import { createServer, type Socket } from 'node:net'

export type Step = 'connect' | 'EHLO' | 'HELO' | 'MAIL' | 'RCPT' | 'DATA' | 'content' | 'dot' | 'RSET' | 'QUIT' | 'STARTTLS'

/**
 * The text is sent unchanged. A function writes for itself and receives the octets that came `behind` the line. `content` is called for
 * each piece of content.
 */
export type Misbehaviour = Partial<Record<Step, string | ((socket: Socket, line: string, session: number, behind: string) => void)>>

export interface MisbehavingPeer extends AsyncDisposable {
  readonly port: number
  readonly connections: number
  /** Each accepted message: a final dot that was answered with 250. */
  readonly taken: readonly { from: string; content: string }[]
  /** Octets passed to the network. */
  readonly written: number
}

const usual: Record<Step, string> = {
  connect: '220 rude.test ESMTP\r\n',
  EHLO: '250-rude.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n',
  HELO: '250 rude.test\r\n',
  MAIL: '250 2.1.0 ok\r\n',
  RCPT: '250 2.1.5 ok\r\n',
  DATA: '354 go on\r\n',
  content: '',
  dot: '250 2.0.0 queued\r\n',
  RSET: '250 2.0.0 ok\r\n',
  QUIT: '221 2.0.0 bye\r\n',
  STARTTLS: '220 2.0.0 go ahead\r\n',
}

export async function startMisbehavingPeer(rude: Misbehaviour, where: { host?: string; port?: number } = {}): Promise<MisbehavingPeer> {
  const sockets = new Set<Socket>()
  const taken: { from: string; content: string }[] = []
  let connections = 0
  let writtenBefore = 0
  const server = createServer({ noDelay: true }, (socket) => {
    const session = ++connections
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      writtenBefore += socket.bytesWritten
      sockets.delete(socket)
    })
    converse(socket, session, rude, taken)
  })
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen(where.port ?? 0, where.host ?? '127.0.0.1', () => resolve()),
  )
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    taken,
    get connections() {
      return connections
    },
    get written() {
      return [...sockets].reduce((sum, socket) => sum + socket.bytesWritten, writtenBefore)
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

function converse(socket: Socket, session: number, rude: Misbehaviour, taken: { from: string; content: string }[]): void {
  let unread = ''
  let content: string | undefined
  let from = ''
  const at = (step: Step, line = ''): boolean => {
    const chosen = rude[step]
    if (typeof chosen === 'function') {
      chosen(socket, line, session, unread)
      return false
    }
    const text = chosen ?? usual[step]
    // The peer has already hung up.
    if (!socket.writable) return false
    if (text !== '') socket.write(text, 'latin1')
    return step === 'DATA' ? /^354/m.test(text) : text.startsWith('2')
  }
  socket.on('data', (octets) => {
    unread += octets.toString('latin1')
    for (;;) {
      if (content !== undefined) {
        const all = `\r\n${unread}`
        const end = all.indexOf('\r\n.\r\n')
        if (end < 0) {
          // Keeps only the last octets, so that the cost of a large message does not grow with its square.
          content = content.length > 100_000 ? content : content + unread.slice(0, -4)
          unread = unread.slice(-4)
          at('content')
          return
        }
        const whole = content + all.slice(2, end)
        content = undefined
        unread = all.slice(end + 5)
        if (at('dot')) taken.push({ from, content: whole })
        continue
      }
      const end = unread.indexOf('\r\n')
      if (end < 0) return
      const line = unread.slice(0, end)
      unread = unread.slice(end + 2)
      const word = line.split(' ', 1)[0]?.toUpperCase() ?? ''
      if (!(word in usual)) continue
      if (word === 'MAIL') from = /<([^>]*)>/.exec(line)?.[1] ?? ''
      const goesOn = at(word as Step, line)
      if (word === 'DATA' && (goesOn || typeof rude.DATA === 'function')) content = ''
      if (word === 'QUIT') socket.end()
    }
  })
  at('connect')
}

/** One octet every `everyMs`. */
export const dripping = (text: string, everyMs: number) => (socket: Socket) => {
  let index = 0
  const timer = setInterval(() => {
    if (socket.writable && index < text.length) socket.write(text[index++] ?? '', 'latin1')
    else clearInterval(timer)
  }, everyMs)
  socket.on('close', () => clearInterval(timer))
}

/** As many octets as the network accepts, up to 10 GB. A further call continues. */
export const pouring = (text: string) => (socket: Socket) => {
  if (socket.listenerCount('drain') > 0) return
  const chunk = text.repeat(Math.ceil(65_536 / text.length))
  let left = 10_000_000_000
  const pour = () => {
    while (!socket.destroyed && left > 0) {
      left -= chunk.length
      if (!socket.write(chunk, 'latin1')) return
    }
  }
  socket.on('drain', pour)
  pour()
}

export const hangUp = (socket: Socket) => void socket.destroy()
export const silent = () => {}
