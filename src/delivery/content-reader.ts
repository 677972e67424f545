/**
 * Reads stored contents, for delivery and for the API. Large ones are read on a thread, with tenants taking turns, because the largest keeps a
 * processor busy for half a second.
 */
import { type Clock, openThread, type Secrets } from '#base'
import { signatureFieldsOf } from '#dkim'
import type { Domains } from '#domains'
import { jsonOctets, openReturnPaths, type ReturnPaths } from '#emails'
import { readHeaders } from '#mail'
import { openTokens, type Tokens, type TrackedRecipient } from '#tracking'
import {
  type ContentPart,
  type ContentReads,
  type ContentTask,
  type PartsAsReceived,
  readContent,
  type SubmittedParts,
  type UnsignedMessage,
} from './read-content.ts'
import { keysFor, traceHeaderOf } from './render-message.ts'

/** The wanted parts; the others are undefined, as is the HTML of an email without any. */
export interface ShownContent extends SubmittedParts {
  headers?: Record<string, string>
  /** As sent. */
  raw?: Buffer
}

/** For the thread. `secret` makes the tracking links. */
export type ContentThreadTask = ContentTask & { secret: string }

/** Read at once, in a few milliseconds. */
const usualSmallOctets = 262_144
const readWithinMs = 20_000
const idleMs = 10_000

interface ContentReaderDeps {
  clock: Clock
  domains: Domains
  secrets: Secrets
}

/** Takes contents as stored. Its functions reject with `TookTooLong` on an overloaded machine. */
export class ContentReader {
  readonly #deps: ContentReaderDeps
  readonly #smallOctets: number
  readonly #tokens: Tokens
  readonly #returnPaths: ReturnPaths
  readonly #thread

  constructor(deps: ContentReaderDeps, smallOctets = usualSmallOctets) {
    this.#deps = deps
    this.#smallOctets = smallOctets
    this.#tokens = openTokens(deps.secrets)
    this.#returnPaths = openReturnPaths(deps.secrets)
    const file = new URL('./content-reader-thread.ts', import.meta.url)
    this.#thread = openThread<ContentThreadTask, unknown>(file, { clock: deps.clock, deadlineMs: readWithinMs, idleMs })
  }

  /** Headers and the raw message are as sent; bodies and attachments are as submitted, before links were rewritten. */
  async read(body: Buffer, recipient: TrackedRecipient, wanted: ReadonlySet<ContentPart>): Promise<ShownContent> {
    const { parts, sent } = await this.#read({ kind: 'parts', body, recipient, wanted })
    const attachments = parts.attachments?.map(({ content, ...one }) => ({ ...one, content: bufferOf(content) }))
    const shown: ShownContent = attachments ? { ...parts, attachments } : parts
    if (!sent) return shown
    const raw = await this.#signed(sent, recipient)
    return { ...shown, ...(wanted.has('headers') ? { headers: readHeaders(raw) } : {}), ...(wanted.has('raw') ? { raw } : {}) }
  }

  /** As the recipient reads it, with tracking. */
  async readAsReceived(body: Buffer, recipient: TrackedRecipient): Promise<PartsAsReceived> {
    return this.#read({ kind: 'received', body, recipient })
  }

  /** In the form that DATA sends. */
  async readToSend(body: Buffer, recipient: TrackedRecipient, form?: 'sevenBit'): Promise<UnsignedMessage> {
    const unsigned = await this.#read({ kind: 'toSend', body, recipient, form })
    return { ...unsigned, octets: bufferOf(unsigned.octets) }
  }

  async #read<Kind extends keyof ContentReads>(task: ContentTask<Kind>): Promise<ContentReads[Kind]['read']> {
    const { body, recipient } = task
    if (jsonOctets(bufferOf(body), body.length) <= this.#smallOctets)
      return readContent(task as ContentTask, this.#tokens) as ContentReads[Kind]['read']
    const [secret] = this.#deps.secrets.known
    if (secret === undefined) throw new Error('no secret is known')
    // Only these: a claimed recipient has more than the thread needs.
    const { tenantId, emailId } = recipient
    const given = { ...task, recipient: { tenantId, emailId }, secret } as ContentThreadTask
    return (await this.#thread.run(tenantId, given)) as ContentReads[Kind]['read']
  }

  /** With its trace header; without signatures if the sending domain no longer exists. */
  async #signed(sent: UnsignedMessage, { tenantId, emailId }: TrackedRecipient): Promise<Buffer> {
    const keys = (await keysFor(sent, tenantId, this.#deps.domains)) ?? []
    const signatures = sent.signable ? await signatureFieldsOf(sent.signable, keys, sent.acceptedAtMs) : ''
    return Buffer.concat([Buffer.from(traceHeaderOf(sent, emailId, this.#returnPaths) + signatures), sent.octets])
  }
}

/** The thread takes and returns plain byte arrays. */
const bufferOf = (octets: Uint8Array) => Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength)
