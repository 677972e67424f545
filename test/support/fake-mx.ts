/**
 * A test mail server on loopback: real TCP and STARTTLS. It keeps the received messages and misbehaves by script. It is not a library,
 * because a library follows the RFCs.
 */
import { createServer, type Socket } from 'node:net'
import { TLSSocket, type TLSSocketOptions } from 'node:tls'
import { testCertificate } from './certificate.ts'

export interface MxEvent {
  stage: 'connect' | 'ehlo' | 'mail' | 'rcpt' | 'data' | 'content' | 'quit'
  /** The command's argument: the name or the address; for `content` the number of octets. */
  argument: string
  /** 1 for the first connection. */
  session: number
  secure: boolean
}

/**
 * A reply (without CRLF; several lines with LF). After it, or instead of it, the server hangs up (`close`) or neither writes nor reads any
 * more (`silent`). `after`: the reply is written when this resolves.
 */
export type MxAnswer = string | { reply?: string; close?: boolean; silent?: boolean; after?: Promise<unknown> } | undefined

export interface FakeMxOptions {
  extensions?: string[]
  /** A function is called each time. */
  starttls?: boolean | (() => boolean)
  /** TLS options of the server: certificate, versions. */
  tls?: TLSSocketOptions | (() => TLSSocketOptions)
  script?: (event: MxEvent) => MxAnswer
  closed?: (session: number) => void
  /** 127.0.0.1 and any port by default. */
  host?: string
  port?: number
  /** Sent unchanged, with CRLF appended. */
  startTlsReply?: string
}

export interface MxMessage {
  from: string
  recipients: string[]
  /** As received, with dots stuffed. */
  wire: Buffer
  /** The message itself, with dots unstuffed. */
  octets: Buffer
  secure: boolean
  session: number
  /** The client's address. */
  source: string
  /** The name given in EHLO. */
  ehloName: string
}

export interface FakeMx extends AsyncDisposable {
  readonly port: number
  readonly messages: MxMessage[]
  /** Connections so far. */
  readonly connections: number
  /** Resolves with the messages once there are `count`; rejects after `withinMs`. */
  waitFor(count: number, withinMs: number): Promise<MxMessage[]>
  close(): Promise<void>
}

const defaultExtensions = ['PIPELINING', '8BITMIME', 'SMTPUTF8', 'SIZE 20971520']
const endOfContent = Buffer.from('\r\n.\r\n')

export async function startFakeMx(options: FakeMxOptions = {}): Promise<FakeMx> {
  const messages: MxMessage[] = []
  const sockets = new Set<Socket>()
  const waiters = new Set<() => void>()
  let connections = 0

  const keep = (message: MxMessage) => {
    messages.push(message)
    for (const look of waiters) look()
  }
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    const session = ++connections
    socket.on('close', () => {
      sockets.delete(socket)
      options.closed?.(session)
    })
    converse(socket, session, options, keep)
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0

  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  return {
    port,
    messages,
    get connections() {
      return connections
    },
    waitFor(count, withinMs) {
      return new Promise((resolve, reject) => {
        const end = (settle: () => void) => {
          clearTimeout(timer)
          waiters.delete(look)
          settle()
        }
        const look = () => {
          if (messages.length >= count) end(() => resolve(messages))
        }
        const timer = setTimeout(
          () => end(() => reject(new Error(`${messages.length} of ${count} messages after ${withinMs} ms`))),
          withinMs,
        )
        waiters.add(look)
        look()
      })
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

function converse(plain: Socket, session: number, options: FakeMxOptions, keep: (message: MxMessage) => void): void {
  let socket: Socket = plain
  const source = plain.remoteAddress ?? ''
  let unread: Buffer = Buffer.alloc(0)
  let secure = false
  let ehloName = ''
  let from: string | undefined
  let recipients: string[] = []
  /** Set while content is read: the offset from which to search for its end. */
  let contentFrom: number | undefined
  let isStopped = false

  /** Sends the script's reply or the usual one. Returns its code, or 0 without a reply. */
  const answer = (stage: MxEvent['stage'], argument: string, usual: string): number => {
    const scripted = options.script?.({ stage, argument, session, secure })
    const {
      reply,
      close = false,
      silent = false,
      after,
    } = typeof scripted === 'string' ? { reply: scripted } : (scripted ?? { reply: usual })
    const write = () => void (reply !== undefined && socket.write(`${reply.replace(/\r?\n/g, '\r\n')}\r\n`))
    if (after) void after.then(write)
    else write()
    if (close) socket.end()
    if (silent) socket.pause()
    isStopped ||= close || silent
    return Number.parseInt(reply ?? '0', 10)
  }

  const forget = () => {
    from = undefined
    recipients = []
  }

  const offersTls = () => (typeof options.starttls === 'function' ? options.starttls() : options.starttls === true)

  const onCommand = (line: string) => {
    const verb = line.slice(0, 4).toUpperCase()
    const address = /<([^>]*)>/.exec(line)?.[1] ?? ''
    if (verb === 'EHLO' || verb === 'HELO') {
      ehloName = line.slice(5)
      const extensions = [...(options.extensions ?? defaultExtensions), ...(offersTls() && !secure ? ['STARTTLS'] : [])]
      const lines = verb === 'HELO' ? ['fake.test'] : ['fake.test', ...extensions]
      answer('ehlo', line, lines.map((text, index) => `250${index === lines.length - 1 ? ' ' : '-'}${text}`).join('\n'))
    } else if (verb === 'STAR') {
      socket.write(options.startTlsReply ?? '220 2.0.0 go ahead\r\n')
      startTls()
    } else if (verb === 'MAIL') {
      if (answer('mail', address, '250 2.1.0 ok') === 250) from = address
    } else if (verb === 'RCPT') {
      if (answer('rcpt', address, from === undefined ? '503 5.5.1 MAIL first' : '250 2.1.5 ok') === 250) recipients.push(address)
    } else if (verb === 'DATA') {
      if (answer('data', '', recipients.length > 0 ? '354 go on' : '503 5.5.1 no valid recipients') === 354) contentFrom = 0
    } else if (verb === 'RSET') {
      forget()
      socket.write('250 2.0.0 ok\r\n')
    } else if (verb === 'QUIT') {
      answer('quit', '', '221 2.0.0 bye')
      socket.end()
    } else {
      socket.write('500 5.5.2 what?\r\n')
    }
  }

  const onContent = (wire: Buffer) => {
    if (answer('content', String(wire.length), '250 2.0.0 queued') === 250) {
      keep({ from: from ?? '', recipients, wire, octets: unstuff(wire), secure, session, source, ehloName })
    }
    forget()
  }

  const onData = (octets: Buffer) => {
    unread = unread.length === 0 ? octets : Buffer.concat([unread, octets])
    while (!isStopped) {
      if (contentFrom !== undefined) {
        const isEmpty = unread.subarray(0, 3).equals(endOfContent.subarray(2))
        const end = isEmpty ? -2 : unread.indexOf(endOfContent, contentFrom)
        if (end < 0 && !isEmpty) {
          contentFrom = Math.max(0, unread.length - endOfContent.length)
          return
        }
        const wire = unread.subarray(0, end + 2)
        unread = unread.subarray(end + 5)
        contentFrom = undefined
        onContent(wire)
        continue
      }
      const end = unread.indexOf('\r\n')
      if (end < 0) return
      const line = unread.toString('utf8', 0, end)
      unread = unread.subarray(end + 2)
      onCommand(line)
    }
  }

  const startTls = () => {
    plain.off('data', onData)
    unread = Buffer.alloc(0)
    forget()
    secure = true
    socket = new TLSSocket(plain, {
      isServer: true,
      ...testCertificate,
      ...(typeof options.tls === 'function' ? options.tls() : options.tls),
    })
    socket.on('data', onData).on('error', () => plain.destroy())
  }

  plain.on('data', onData).on('error', () => plain.destroy())
  answer('connect', plain.remoteAddress ?? '', '220 fake.test ESMTP')
}

/** Removes stuffed dots (RFC 5321 section 4.5.2). */
function unstuff(wire: Buffer): Buffer {
  if (wire[0] !== 46 && !wire.includes('\r\n.')) return wire
  return Buffer.from(wire.toString('latin1').replace(/^\./, '').replaceAll('\r\n.', '\r\n'), 'latin1')
}
