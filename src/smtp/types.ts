/**
 * Input and results of one SMTP conversation: types and default limits only.
 */
import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Clock } from '#base'
import type { CostlyHandshakes } from '#net'

/** The peer: its address, its port, and the name it was found under (for SNI, certificates and records). */
export interface Peer {
  address: string
  port: number
  host: string
}

/** Returns a socket that is connecting to a peer; the default is that of node:net. */
export type Dial = (to: { host: string; port: number; localAddress: string | undefined }) => Socket

/** All times are in milliseconds and cover a whole stage, not each octet: a peer that sends slowly gets no more time. */
export interface SmtpLimits {
  connectMs: number
  greetingMs: number
  /** From the start of a command's turn to its reply. */
  commandMs: number
  /** From DATA to its reply. */
  dataMs: number
  /** For the peer to read a block of content (64 KB). */
  blockMs: number
  /** For the peer to read all content; the time of its octets at the minimum rate is added. RFC 5321 section 4.5.3.2.5 limits only each block. */
  contentMs: number
  minOctetsPerSecond: number
  /** From the final dot to its reply. A shorter limit causes duplicates (RFC 5321 section 4.5.3.2.6). */
  finalReplyMs: number
  tlsMs: number
  replyLines: number
  replyLineOctets: number
  replyOctets: number
}

export const defaultLimits: SmtpLimits = {
  connectMs: 30_000,
  greetingMs: 60_000,
  commandMs: 120_000,
  dataMs: 120_000,
  blockMs: 180_000,
  contentMs: 600_000,
  minOctetsPerSecond: 8192,
  finalReplyMs: 600_000,
  tlsMs: 30_000,
  replyLines: 100,
  replyLineOctets: 2048,
  replyOctets: 65_536,
}

export interface ConnectOptions {
  peer: Peer
  /** Postrider's name in EHLO. */
  ehloName: string
  /** The name that Postrider's own server greets with: a peer that greets with it is this server, and mail would loop. */
  ownName?: string | undefined
  localAddress?: string | undefined
  /** Already connected (see `happy-eyeballs`); the conversation owns it from now on. */
  socket?: Socket | undefined
  /**
   * `opportunistic`: STARTTLS when offered, any certificate; `old`: the same with TLS 1.0 and weak keys; `none`: never; `implicit`: TLS
   * before the greeting; `require`: STARTTLS or failure. The operator relies on the last two, so they also require a certificate that is
   * valid for the peer's host. A demand: STARTTLS or failure, with certificates that it accepts.
   */
  tls: 'opportunistic' | 'old' | 'none' | 'implicit' | 'require' | TlsDemand
  /** Sent only over TLS or to a loopback address. */
  auth?: { user: string; password: string } | undefined
  /** `never`: one command at a time, for a peer that fails with pipelining. */
  pipelining?: 'when offered' | 'never'
  /** Undefined: every address may have a handshake. */
  costlyHandshakes?: CostlyHandshakes | undefined
  clock: Clock
  limits?: Partial<SmtpLimits>
  dial?: Dial | undefined
}

/** The TLS requirement of a recipient domain or the operator. */
export interface TlsDemand {
  /** For SNI and the usual verification; defaults to the peer's host. */
  serverName?: string | undefined
  /**
   * Receives the peer's certificates as sent, its own first, and the fault that the usual verification found (undefined: none). Returns a
   * verdict in words for the record.
   */
  judge(certificates: readonly X509Certificate[], complaint: string | undefined): { isContent: boolean; verdict: string }
}

/** Facts about a connection's encryption. */
export interface TlsFacts {
  /** For example `TLSv1.3`. */
  version: string
  cipher: string
  /** `valid`, or the fault in words. */
  certificate: string
}

export type Stage = 'connect' | 'greeting' | 'ehlo' | 'tls' | 'auth' | 'mail' | 'rcpt' | 'data' | 'content' | 'final'

/** Extension that the message needs and the server does not offer (RFC 1870, 6531, 6152). `size`: the server's limit is too small. */
type MissingExtension = 'size' | 'smtputf8' | 'eightbitmime'

/** The reason for a conversation that ended without the expected reply. */
export interface Failure {
  stage: Stage
  kind: 'reply' | 'refused' | 'timeout' | 'dropped' | 'protocol' | 'tls' | 'aborted' | MissingExtension | 'loop'
  /** The peer's reply, if a reply ended the conversation. */
  reply?: Reply | undefined
  message: string
  transcript: string
  /** The TLS facts of a completed handshake whose certificate was rejected. */
  tls?: TlsFacts | undefined
  /** The handshake was refused; an older TLS version may succeed. */
  mayBeOldTls?: boolean
  /** The peer does not offer STARTTLS, or refused the command. */
  isWithoutTls?: boolean
}

export interface Reply {
  /** 200 to 599. */
  code: number
  /** The enhanced status code (RFC 3463), if the reply has one. Its class need not agree with the code; the code counts. */
  enhanced: string | null
  /** The lines with their codes, joined by LF; unprintable characters are escaped. */
  text: string
}

/** One message to its recipients at one peer. */
export interface Transaction {
  /** Empty for the null return path. */
  returnPath: string
  recipients: string[]
  /** Complete header fields in front of `data`: lines end in CRLF, and no line begins with a dot. */
  fieldsOnTop?: Buffer
  /** Lines end in CRLF, including the last; dots stuffed; without the final dot. */
  data: Buffer
  needs8bit: boolean
  needsSmtpUtf8: boolean
  /** Called right before the write that contains the final dot; if it returns false, the dot is never written. */
  mayCommitTransaction: () => boolean
}

export type RecipientResult =
  | { state: 'accepted'; reply: Reply }
  | { state: 'refused'; stage: Stage; reply: Reply }
  /** Certainly not sent. */
  | { state: 'failed'; failure: Failure }
  /** The final dot was written and its reply never arrived: the message may or may not have been sent. */
  | { state: 'unknown'; failure: Failure }

export interface TransactionResult {
  /** In the order of the transaction's recipients. */
  recipients: RecipientResult[]
  transcript: string
  durationMs: number
  /** Time of the last reply of each stage, in ms after the transaction began. */
  repliedMs: Readonly<Partial<Record<Stage, number>>>
}

export interface Extensions {
  /** The peer's limit in octets; 0 if it offers SIZE without a limit, null if it does not offer it (RFC 1870). */
  size: number | null
  pipelining: boolean
  eightBitMime: boolean
  smtpUtf8: boolean
}

export interface SmtpConnection {
  readonly peer: Peer
  readonly secure: boolean
  /** Null without TLS. */
  readonly tls: TlsFacts | null
  readonly extensions: Extensions
  /** Never rejects. A transaction given while another runs follows it; with PIPELINING directly behind its final dot. */
  transact(transaction: Transaction): Promise<TransactionResult>
  /** Whether another transaction may be given. */
  readonly usable: boolean
  /** The peer has a final dot and has not answered it. */
  readonly awaitsFinalReply: boolean
  /** Resolves when the socket is closed, for any reason. */
  readonly closed: Promise<void>
  /** Sends QUIT after the given transactions are answered; does not delay them. */
  quit(): void
  /** Ends at once; transactions before their final dot fail as `aborted`. */
  destroy(): void
}

export type ConnectResult = { ok: true; connection: SmtpConnection } | { ok: false; failure: Failure }
