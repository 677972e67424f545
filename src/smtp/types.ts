/** What one SMTP conversation is asked for and what it comes to. Types and default limits only. */
import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Clock } from '#base'

/** Where to connect: the address, its port, and the name it was found under (for SNI, certificates and records). */
export interface Peer {
  address: string
  port: number
  host: string
}

/** Makes a socket that is on its way to a peer; the usual one is node:net's. */
export type Dial = (to: { host: string; port: number; localAddress: string | undefined }) => Socket

/** All times in milliseconds and total per stage, not per octet: a peer that drips gets no more of it. */
export interface SmtpLimits {
  connectMs: number
  greetingMs: number
  /** From a command's turn to its reply. */
  commandMs: number
  /** From DATA to its reply. */
  dataMs: number
  /** For a block of content (64 KB) to be taken by the peer. */
  blockMs: number
  /** From the final dot to its reply. A shorter limit makes duplicates (RFC 5321 section 4.5.3.2.6). */
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
  finalReplyMs: 600_000,
  tlsMs: 30_000,
  replyLines: 100,
  replyLineOctets: 2048,
  replyOctets: 65_536,
}

export interface ConnectOptions {
  peer: Peer
  /** Our name in EHLO. */
  ehloName: string
  /** That our own server greets with: who greets so is ourselves, and mail would go round in a circle. */
  ownName?: string | undefined
  localAddress?: string | undefined
  /** Connected already (see `reach`): it belongs to the conversation from now on. */
  socket?: Socket | undefined
  /**
   * `opportunistic`: STARTTLS when offered, any certificate; `old`: likewise, TLS 1.0 and weak keys too; `none`: never; `implicit`: TLS
   * before the greeting; `require`: STARTTLS or nothing. The last two are promises to an operator, so they also want a certificate that
   * is valid for the peer's host. A demand: STARTTLS or nothing, with certificates that it is content with.
   */
  tls: 'opportunistic' | 'old' | 'none' | 'implicit' | 'require' | TlsDemand
  /** Sent only over TLS or to a loopback address. */
  auth?: { user: string; password: string } | undefined
  /** `never`: one command at a time, for a peer that lost its way among several. */
  pipelining?: 'when offered' | 'never'
  clock: Clock
  limits?: Partial<SmtpLimits>
  dial?: Dial | undefined
}

/** What a recipient's domain, or the operator, wants of TLS. */
export interface TlsDemand {
  /** For SNI and the usual rules; the peer's host when absent. */
  serverName?: string | undefined
  /**
   * The peer's certificates as sent, its own first, and what the usual rules have against them (undefined: nothing). Returns a verdict in
   * words for the record.
   */
  judge(certificates: readonly X509Certificate[], complaint: string | undefined): { isContent: boolean; verdict: string }
}

/** What is known of a connection's encryption. */
export interface TlsFacts {
  /** As `TLSv1.3`. */
  version: string
  cipher: string
  /** `valid`, or what is wrong, in words. */
  certificate: string
}

export type Stage = 'connect' | 'greeting' | 'ehlo' | 'tls' | 'auth' | 'mail' | 'rcpt' | 'data' | 'content' | 'final'

/** The extension of SMTP that the message needs and the server does not offer: RFC 1870, 6531, 6152. For `size`: not for one so large. */
type MissingExtension = 'size' | 'smtputf8' | 'eightbitmime'

/** Why a conversation ended without the answer that was wanted. */
export interface Failure {
  stage: Stage
  kind: 'reply' | 'refused' | 'timeout' | 'dropped' | 'protocol' | 'tls' | 'aborted' | MissingExtension | 'loop'
  /** What the peer said, if it was an answer that ended it. */
  reply?: Reply | undefined
  message: string
  transcript: string
  /** Of a handshake that came about, where its certificate was not good enough. */
  tls?: TlsFacts | undefined
  /** The handshake was refused, which an older version of TLS may mend. */
  mayBeOldTls?: boolean
}

export interface Reply {
  /** 200 to 599. */
  code: number
  /** The enhanced status code of RFC 3463 if the reply has one; its class need not agree with the code, and the code rules. */
  enhanced: string | null
  /** The lines with their codes, joined by LF; whatever is not printable is escaped. */
  text: string
}

/** One message to the recipients it has at one peer. */
export interface Transaction {
  /** Empty for the null return path. */
  returnPath: string
  recipients: string[]
  /** Whole header fields in front of `data`: lines that end in CRLF, none beginning with a dot. */
  fieldsOnTop?: Buffer
  /** Lines end in CRLF, the last one too; dots stuffed; without the final dot. */
  data: Buffer
  needs8bit: boolean
  needsSmtpUtf8: boolean
  /** Asked right before the write that holds the final dot; after a no the dot is never written. */
  mayFinish: () => boolean
}

export type RecipientResult =
  | { state: 'accepted'; reply: Reply }
  | { state: 'refused'; stage: Stage; reply: Reply }
  /** Certainly not sent. */
  | { state: 'failed'; failure: Failure }
  /** The final dot was written and its reply never seen: sent or not, nobody here knows. */
  | { state: 'unknown'; failure: Failure }

export interface TransactionResult {
  /** In the order of the transaction's recipients. */
  recipients: RecipientResult[]
  transcript: string
  durationMs: number
  /** When the last reply of a stage came, in ms after the transaction began. */
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
  /** Null in the clear. */
  readonly tls: TlsFacts | null
  readonly extensions: Extensions
  /** Never rejects. A transaction given while another runs follows it; with PIPELINING right behind its final dot. */
  transact(transaction: Transaction): Promise<TransactionResult>
  /** May another transaction be given? */
  readonly usable: boolean
  /** Resolves when the socket is closed, for whatever reason. */
  readonly closed: Promise<void>
  /** Says QUIT when the transactions given are answered; delays none of them. */
  quit(): void
  /** Ends at once; transactions before their final dot fail as `aborted`. */
  destroy(): void
}

export type ConnectResult = { ok: true; connection: SmtpConnection } | { ok: false; failure: Failure }
