/**
 * An SMTP port: counts connections, provides TLS, and passes each client step to a `Backend`, whose result is sent as the reply. Protocol
 * states and parsing come from the library (smtp-server); smtp-session.ts holds the changes to them.
 */
import type { AddressInfo, Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { SMTPConnectionOptions } from 'smtp-server/lib/smtp-connection.js'
import { SMTPServer } from 'smtp-server/lib/smtp-server.js'
import type { SMTPServerAddress, SMTPServerOptions, SMTPServerSession } from 'smtp-server/lib/types.js'
import { type Clock, type Log, NetworkConnections, portTaken } from '#base'
import type { Certificate } from './certificate.ts'
import type { MemoryBudget } from './memory-budget.ts'
import { collect } from './message-buffer.ts'
import { ReplyError, replyTo, tryLater } from './smtp-replies.ts'
import { Conversation, type ConversationBounds } from './smtp-session.ts'

export interface Visit<Login> {
  id: string
  /** The client's address. */
  address: string
  /** The name in its EHLO. */
  greeting: string
  secure: boolean
  login: Login
  /** Empty: the null reverse-path. */
  from: string
  /** Those parameters of MAIL that the backend reads, by their names in capitals. */
  parameters: Readonly<Record<string, string>>
  recipients: readonly string[]
}

/** Decides each step. An exception is sent to the client: a Reply or a Refusal unchanged, any other as 451. */
export interface Backend<Login> {
  /** If absent, AUTH is not offered, and every `login` is undefined. */
  authenticate?(userName: string, key: string, address: string): Promise<Login>
  /** An extension of its own: its line in the EHLO reply, and the parameters of MAIL that `visit.parameters` then has. */
  readonly extension?: { keyword: () => string; parameters: readonly string[] }
  sender(visit: Visit<Login>): Promise<void>
  recipient(address: string, visit: Visit<Login>): Promise<void>
  /** Once it resolves, the server is responsible for the message; its result is sent after 250. */
  message(octets: Buffer, visit: Visit<Login>): Promise<string>
}

export interface ListenerLimits extends ConversationBounds {
  connections: number
  connectionsPerNetwork: number
  largestOctets: number
  recipients: number
}

export interface ListenerOptions<Login> {
  host: string
  port: number
  /** The setting that configures the port. */
  setting: string
  /** The host name in the greeting. */
  hostname: string
  tls: 'starttls' | 'implicit'
  certificate: Certificate
  backend: Backend<Login>
  bounds: ListenerLimits
  budget: MemoryBudget
  clock: Clock
  log: Log
}

export interface OpenListener {
  port: number
  useCertificate(certificate: Certificate): void
  /** Completes messages already being received; other clients get 421. */
  stop(): Promise<void>
}

const handshakeWithinMs = 30_000
const commandWithinMs = 10_000
/** Longer than the 30 s for which a message waits for another one with the same idempotency key. */
const messageWithinMs = 35_000
const idleMs = 300_000
const stopWithinMs = 30_000
const oldestTls = 'TLSv1.2'
/** Parameters of the extensions offered on any port, and AUTH, which is harmless. */
const senderParameters = ['SIZE', 'BODY', 'SMTPUTF8', 'RET', 'ENVID', 'AUTH']
const recipientParameters = ['NOTIFY', 'ORCPT']
const neverOffered = ['WIZ', 'SHELL', 'KILL', 'XCLIENT', 'XFORWARD']

class Server extends SMTPServer {
  readonly conversations = new WeakMap<SMTPServerSession, Conversation>()
  readonly #bounds: ListenerLimits
  readonly #clock: Clock
  readonly #counts: NetworkConnections
  readonly #leaves = new WeakMap<Socket, () => void>()
  readonly #log: Log
  readonly #extension: (() => string) | undefined
  #isStopping = false

  constructor(
    options: SMTPServerOptions,
    facts: { bounds: ListenerLimits; clock: Clock; log: Log; extension: (() => string) | undefined },
  ) {
    super(options)
    this.#extension = facts.extension
    this.#bounds = facts.bounds
    this.#counts = new NetworkConnections({ total: facts.bounds.connections, perNetwork: facts.bounds.connectionsPerNetwork })
    this.#clock = facts.clock
    this.#log = facts.log
  }

  /**
   * Runs the client's step in the backend within the time limit, then starts the limit of the next step. A wrong login starts none, or a
   * client without a login could stay for as long as it likes.
   */
  put<T>(
    session: SMTPServerSession,
    work: () => Promise<T>,
    withinMs: number,
    answer: (error: ReplyError | null, result?: T) => void,
    step: 'login' | 'mail' | 'message' = 'mail',
  ): void {
    const conversation = this.conversations.get(session)
    const settle = (error: unknown, result?: T) => {
      const reply = error === null ? null : (replyTo(error) ?? tryLater())
      if (error !== null && !replyTo(error)) this.#log.warn({ err: error, conversation: session.id }, 'an SMTP command failed')
      answer(reply, result)
      if (step === 'message' && !reply) conversation?.accepted()
      if (step === 'login' && reply) conversation?.endIfOverdue()
      else conversation?.allow('stepMs')
      if (reply?.closes) conversation?.send(421, '4.7.0 Closing connection')
      if (this.#isStopping) setImmediate(() => conversation?.leaveUnlessBusy())
    }
    within(work(), withinMs, this.#clock).then(
      (result) => settle(null, result),
      (error: unknown) => settle(error),
    )
  }

  /** Completes messages already being received. */
  stop(): Promise<void> {
    this.#isStopping = true
    return new Promise((resolve) => {
      this.close(() => resolve())
      for (const conversation of this.connections) if (conversation instanceof Conversation) conversation.leaveUnlessBusy()
    })
  }

  override connect(socket: Socket | TLSSocket, options?: SMTPConnectionOptions | null): void {
    const upgraded = (plain: Socket) => this.#leaveAtEndOf(plain)
    const conversation = new Conversation(this, socket, options, {
      clock: this.#clock,
      bounds: this.#bounds,
      extension: this.#extension,
      upgraded,
    })
    this.connections.add(conversation)
    this.conversations.set(conversation.session, conversation)
    conversation.on('error', (error) => this.emit('error', error))
    conversation.init()
  }

  #leaveAtEndOf(socket: Socket): void {
    socket.once('close', () => this.#leaves.get(socket)?.())
  }

  /** The first check of every connection, before TLS costs any work. */
  override _acceptSocket(socket: Socket, handshake: boolean): (() => void) | false {
    const leave = this.#counts.admit(socket.remoteAddress ?? '', this.connections.size + this._pendingSockets.size)
    if (!leave) {
      socket.on('error', () => {})
      if (!handshake) socket.write('421 4.7.0 Too many connections, try again later\r\n')
      socket.destroySoon()
      return false
    }
    this.#leaves.set(socket, () => {
      this.#leaves.delete(socket)
      leave()
    })
    this.#leaveAtEndOf(socket)
    if (handshake) {
      const cancel = this.#clock.after(handshakeWithinMs, () => this._pendingSockets.get(socket)?.destroy())
      socket.once('close', cancel)
    }
    return super._acceptSocket(socket, handshake)
  }
}

export async function openListener<Login>(options: ListenerOptions<Login>): Promise<OpenListener> {
  const { backend, bounds, clock, log } = options
  const parameters = backend.extension?.parameters ?? []
  const server = new Server(
    {
      ...libraryOptions(options),
      onAuth({ username = '', password }, session, done) {
        const work = async () => backend.authenticate?.(username, password ?? '', session.remoteAddress)
        server.put(session, work, commandWithinMs, (error, user) => done(error, { user }), 'login')
      },
      onMailFrom({ address, args }, session, done) {
        const work = async () => {
          refuseUnknown(args, [...senderParameters, ...parameters])
          await backend.sender(visitOf<Login>(session, { address, args }, parameters))
        }
        server.put(session, work, commandWithinMs, done)
      },
      onRcptTo({ address, args }, session, done) {
        const work = async () => {
          refuseUnknown(args, recipientParameters)
          await backend.recipient(address, visitOf<Login>(session, session.envelope.mailFrom, parameters))
        }
        server.put(session, work, commandWithinMs, done)
      },
      onData(stream, session, done) {
        server.conversations.get(session)?.allow('messageMs')
        const visit = visitOf<Login>(session, session.envelope.mailFrom, parameters)
        const use = async (octets: Buffer) => backend.message(octets, visit)
        const inTime = (work: Promise<string>) => within(work, messageWithinMs, clock)
        const room = { largest: bounds.largestOctets, budget: options.budget, address: session.remoteAddress }
        server.put(session, () => collect(stream, room, use, inTime), bounds.messageMs + messageWithinMs, done, 'message')
      },
    },
    { bounds, clock, log, extension: backend.extension?.keyword },
  )
  server.on('error', (error) => log.debug({ err: error }, 'SMTP connection failed'))
  const port = await new Promise<number>((resolve, reject) => {
    server.server.once('error', (error) => reject(portTaken(error, options.setting, options)))
    server.listen(options.port, options.host, () => resolve((server.server.address() as AddressInfo).port))
  })
  return {
    port,
    useCertificate: (changed) => server.updateSecureContext({ ...changed }),
    stop: () => server.stop(),
  }
}

/** The library's settings. */
function libraryOptions<Login>({ backend, bounds, certificate, hostname, tls }: ListenerOptions<Login>): SMTPServerOptions {
  const takesLogins = 'authenticate' in backend
  return {
    ...certificate,
    minVersion: oldestTls,
    secure: tls === 'implicit',
    name: hostname,
    heloResponse: '%s',
    size: bounds.largestOctets,
    disabledCommands: takesLogins ? neverOffered : [...neverOffered, 'AUTH'],
    authMethods: ['PLAIN', 'LOGIN'],
    hideENHANCEDSTATUSCODES: false,
    hideDSN: !takesLogins,
    disableReverseLookup: true,
    logger: false,
    socketTimeout: idleMs,
    closeTimeout: stopWithinMs,
    maxRecipients: bounds.recipients,
  }
}

type Sender = Pick<SMTPServerAddress, 'address' | 'args'>

const visitOf = <Login>(session: SMTPServerSession, sender: Sender | false, parameters: readonly string[]): Visit<Login> => ({
  id: session.id,
  address: session.remoteAddress,
  greeting: session.hostNameAppearsAs || '',
  secure: session.secure,
  login: session.user as Login,
  from: sender ? sender.address : '',
  parameters: Object.fromEntries(
    Object.entries((sender && sender.args) || {}).flatMap(([name, value]) => (parameters.includes(name) ? [[name, String(value)]] : [])),
  ),
  recipients: session.envelope.rcptTo.map((one) => one.address),
})

/** RFC 5321 section 4.1.1.11: a client that requests an unsupported parameter, such as REQUIRETLS, must not assume that it was honoured. */
function refuseUnknown(given: SMTPServerAddress['args'], known: readonly string[]): void {
  if (Object.keys(given || {}).some((name) => !known.includes(name))) throw new ReplyError(555, '5.5.4', 'Parameter not offered')
}

/** Returns the result of `work`, or a temporary failure after the limit. The work continues, because a commit is never cancelled. */
function within<T>(work: Promise<T>, limitMs: number, clock: Clock): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(limitMs, () => reject(tryLater()))
    work.then(resolve, reject).finally(cancel)
  })
}
