/**
 * Opens a connection up to its first transaction: TCP, greeting, EHLO, STARTTLS, AUTH (RFC 5321, 3207, 4954). Promises: never rejects, for
 * any behaviour of the peer; every stage has a time limit; a password never crosses a network without TLS.
 */
import { isIP, type Socket } from 'node:net'
import { affordableCiphers } from '#net'
import { ClientConnection } from './connection.ts'
import { type Hello, noExtensions, parseExtensions } from './ehlo-extensions.ts'
import { connectingTo, happyEyeballs } from './happy-eyeballs.ts'
import { Channel } from './reply-channel.ts'
import { openTranscript, type Transcript } from './transcript.ts'
import {
  type ConnectOptions,
  type ConnectResult,
  defaultLimits,
  type Failure,
  type Reply,
  type SmtpLimits,
  type Stage,
  type TlsFacts,
} from './types.ts'

/** Carries a failure up through the steps; used only in this file. */
class Stopped extends Error {
  readonly stage: Stage
  readonly kind: Failure['kind']
  readonly reply: Reply | undefined
  /** Further fields of the failure. */
  readonly facts: Pick<Failure, 'tls' | 'mayBeOldTls' | 'isWithoutTls'>
  constructor(stage: Stage, kind: Failure['kind'], message: string, reply?: Reply, facts: Stopped['facts'] = {}) {
    super(message)
    this.facts = facts
    this.stage = stage
    this.kind = kind
    this.reply = reply
  }
}

interface Setup {
  options: ConnectOptions
  limits: SmtpLimits
  channel: Channel
  transcript: Transcript
  /** Set by the handshake. */
  tls: TlsFacts | null
}

export async function connect(options: ConnectOptions): Promise<ConnectResult> {
  const limits = { ...defaultLimits, ...options.limits }
  const transcript = openTranscript()
  const { peer } = options
  let channel: Channel | undefined
  const beganMs = options.clock.monotonicMs()
  const sinceMs = () => Math.round(options.clock.monotonicMs() - beganMs)
  try {
    transcript.note(connectingTo(options))
    channel = new Channel(await openSocket(options, limits), limits, options.clock)
    const setup: Setup = { options, limits, channel, transcript, tls: null }
    if (options.tls === 'implicit') {
      refuseCostly(setup)
      await handshake(setup)
    }
    await greeting(setup)
    const greetedMs = sinceMs()
    const hello = await introduce(setup)
    transcript.note(`greeted after ${greetedMs} ms, ready after ${sinceMs()} ms`)
    const { clock } = options
    return {
      ok: true,
      connection: new ClientConnection({ peer, channel, tls: setup.tls, hello, limits, clock, beginning: transcript.text }),
    }
  } catch (error) {
    const stopped =
      error instanceof Stopped ? error : new Stopped('connect', 'protocol', error instanceof Error ? error.message : 'unknown error')
    transcript.note(stopped.message)
    channel?.quit()
    const { stage, kind, reply, message, facts } = stopped
    return { ok: false, failure: { stage, kind, reply, message, transcript: transcript.text, ...facts } }
  }
}

/** The socket that is already connected, or a new one. */
async function openSocket({ peer, localAddress, socket, clock, dial }: ConnectOptions, limits: SmtpLimits): Promise<Socket> {
  if (socket) return socket
  for await (const reached of happyEyeballs([{ peer, localAddress }], { clock, connectMs: limits.connectMs, dial })) {
    if ('socket' in reached) return reached.socket
    throw new Stopped('connect', reached.failure.kind, reached.failure.message)
  }
  throw new Stopped('connect', 'refused', `${peer.address} was not tried`)
}

/** The exact greeting of Postrider's own listeners; another mail server with the same name names its software too. */
export const ownGreeting = (hostname: string) => `220 ${hostname} ESMTP`

const maxStrayGreetings = 3

/**
 * Some servers greet twice, for example behind a proxy that has greeted. Until EHLO is answered, a 220 cannot be the reply to a command,
 * so ignoring it puts no reply out of sequence. Later it could be one, and ends the connection like any other unexpected reply.
 */
function passOverGreetings({ channel, transcript }: Setup): void {
  let strays = 0
  channel.passOver(({ code, text }) => {
    if (code !== 220 || strays === maxStrayGreetings) return false
    strays++
    transcript.server(text)
    transcript.note('that answers nothing')
    return true
  })
}

async function greeting(setup: Setup): Promise<void> {
  const { channel, limits, transcript, options } = setup
  const reply = await nextReply(channel, 'greeting', limits.greetingMs, transcript, () => passOverGreetings(setup))
  if (options.ownName !== undefined && reply.text === ownGreeting(options.ownName))
    throw new Stopped('greeting', 'loop', `the peer is this installation, or another one with the name ${options.ownName}`)
  if (reply.code === 220) return
  if (reply.code >= 400) throw new Stopped('greeting', 'reply', `the peer refused the connection: ${reply.text}`, reply)
  throw new Stopped('greeting', 'protocol', `not a greeting: ${reply.text}`)
}

/** EHLO, repeated after TLS, because an attacker could have sent the replies before it (RFC 3207 section 4.2). */
async function introduce(setup: Setup): Promise<Hello> {
  const { options, channel } = setup
  let hello = await sendHello(setup)
  channel.passOver(() => false)
  if (!channel.secure && options.tls !== 'none') {
    if (hello.startTls) {
      await startTls(setup)
      hello = await sendHello(setup)
    } else if (options.tls === 'require' || typeof options.tls === 'object') {
      throw new Stopped('tls', 'tls', 'TLS is required, but the peer does not offer STARTTLS', undefined, { isWithoutTls: true })
    }
  }
  if (options.auth) await authenticate(setup, hello, options.auth)
  if (options.pipelining !== 'never') return hello
  return { ...hello, extensions: { ...hello.extensions, pipelining: false } }
}

async function sendHello(setup: Setup): Promise<Hello> {
  const { ehloName } = setup.options
  if (!/^[\x21-\x7e]{1,255}$/.test(ehloName)) throw new Stopped('ehlo', 'protocol', 'POSTRIDER_HOSTNAME is not valid in EHLO')
  const ehlo = await command(setup, 'ehlo', `EHLO ${ehloName}`)
  if (ehlo.code < 300) return parseExtensions(ehlo.text)
  if (ehlo.code === 421) throw new Stopped('ehlo', 'reply', `the peer closed the connection: ${ehlo.text}`, ehlo)
  const helo = await command(setup, 'ehlo', `HELO ${ehloName}`)
  if (helo.code < 300) return noExtensions
  throw new Stopped('ehlo', 'reply', `the peer refused EHLO and HELO: ${helo.text}`, helo)
}

async function startTls(setup: Setup): Promise<void> {
  const { channel, transcript, limits } = setup
  refuseCostly(setup)
  send(setup, 'STARTTLS')
  const reply = await nextReply(channel, 'tls', limits.commandMs, transcript, () => channel.discardRest())
  if (reply.code !== 220) throw new Stopped('tls', 'tls', `the peer refused STARTTLS: ${reply.text}`, undefined, { isWithoutTls: true })
  await handshake(setup)
}

const tlsName = ({ tls, peer }: ConnectOptions): string => (typeof tls === 'object' ? tls.serverName : undefined) ?? peer.host

/** The failure is that of a failed handshake: opportunistic TLS continues without TLS. */
function refuseCostly({ options }: Setup): void {
  if (options.costlyHandshakes?.has({ address: options.peer.address, name: tlsName(options) }))
    throw new Stopped('tls', 'tls', 'no TLS handshake: an earlier one with this server cost too much processor time')
}

/**
 * Opportunistic TLS accepts any certificate: encryption to an unverified peer is better than no encryption (RFC 7435). Where TLS is
 * required, the certificate must be valid for the host, except on this machine, or meet the demand.
 */
async function handshake(setup: Setup): Promise<void> {
  const { channel, options, limits, transcript } = setup
  const { tls, peer } = options
  const demand = typeof tls === 'object' ? tls : undefined
  const host = tlsName(options)
  const beganMs = options.clock.monotonicMs()
  const octetsBefore = channel.octetsRead
  const takesAny = tls === 'opportunistic' || tls === 'old' || demand !== undefined
  const session = await channel.secureWith(
    {
      host,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      // OpenSSL offers TLS 1.0 only at its lowest security level.
      ...(tls === 'old'
        ? { minVersion: 'TLSv1', ciphers: affordableCiphers('DEFAULT:@SECLEVEL=0') }
        : { minVersion: 'TLSv1.2', ciphers: affordableCiphers() }),
      rejectUnauthorized: !takesAny && !isLoopback(peer.address),
    },
    limits.tlsMs,
  )
  const certificates = 'kind' in session ? undefined : () => session.certificates()
  options.costlyHandshakes?.note({ address: peer.address, name: host }, channel.octetsRead - octetsBefore, certificates)
  if ('kind' in session)
    throw new Stopped('tls', 'tls', `the TLS handshake failed: ${session.message}`, undefined, { mayBeOldTls: session.kind !== 'timeout' })
  const { version, cipher, complaint } = session
  const { isContent, verdict } = demand?.judge(session.certificates(), complaint) ?? { isContent: true, verdict: complaint ?? 'valid' }
  setup.tls = { version, cipher, certificate: verdict }
  const tookMs = Math.round(options.clock.monotonicMs() - beganMs)
  transcript.note(`TLS: ${version}, ${cipher}, certificate ${verdict}, in ${tookMs} ms`)
  if (!isContent) throw new Stopped('tls', 'tls', `the certificate is not acceptable: ${verdict}`, undefined, { tls: setup.tls })
}

async function authenticate(setup: Setup, hello: Hello, auth: { user: string; password: string }): Promise<void> {
  if (!setup.channel.secure && !isLoopback(setup.options.peer.address))
    throw new Stopped('auth', 'tls', 'refusing to send the password without TLS')
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  let reply: Reply
  if (hello.auth.includes('PLAIN')) {
    reply = await command(setup, 'auth', `AUTH PLAIN ${base64(`\0${auth.user}\0${auth.password}`)}`, 'AUTH PLAIN <secret>')
  } else if (hello.auth.includes('LOGIN')) {
    reply = await command(setup, 'auth', 'AUTH LOGIN')
    if (reply.code === 334) reply = await command(setup, 'auth', base64(auth.user), '<secret>')
    if (reply.code === 334) reply = await command(setup, 'auth', base64(auth.password), '<secret>')
  } else {
    throw new Stopped('auth', 'protocol', 'the peer offers neither AUTH PLAIN nor AUTH LOGIN')
  }
  if (reply.code >= 400) throw new Stopped('auth', 'reply', `login refused: ${reply.text}`, reply)
  if (reply.code >= 300) throw new Stopped('auth', 'protocol', `the peer requested further login data: ${reply.text}`)
}

function command(setup: Setup, stage: Stage, line: string, shown = line): Promise<Reply> {
  send(setup, line, shown)
  return nextReply(setup.channel, stage, setup.limits.commandMs, setup.transcript)
}

function send({ channel, transcript }: Setup, line: string, shown = line): void {
  transcript.client(shown)
  channel.write(Buffer.from(`${line}\r\n`))
}

function nextReply(channel: Channel, stage: Stage, withinMs: number, transcript: Transcript, atOnce = () => {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const stop = ({ kind, message, reply }: { kind: Failure['kind']; message: string; reply?: Reply }) => {
      // Any failure during STARTTLS counts as a TLS failure, so that the caller may retry without it.
      reject(stage === 'tls' ? new Stopped(stage, 'tls', message) : new Stopped(stage, kind, message, reply))
    }
    if (channel.broken) {
      stop(channel.broken)
      return
    }
    channel.listen({ ended: stop })
    channel.expect(stage === 'greeting' ? 'the greeting' : `the reply to ${stage.toUpperCase()}`, withinMs, (reply) => {
      atOnce()
      transcript.server(reply.text)
      resolve(reply)
    })
  })
}

function isLoopback(address: string): boolean {
  return address === '::1' || (isIP(address) === 4 && address.startsWith('127.'))
}
