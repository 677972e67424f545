/** The contents of emails for /v1 and the APIs of other vendors. The largest becomes an answer of 45 MB, so large ones wait for memory. */
import type { Clock, Secrets } from '#base'
import type { Db } from '#db'
import { type ContentPart, ContentReader, type ShownContent } from '#delivery'
import type { Domains } from '#domains'
import { type Content, type ContentCodec, type Email, findContentBody, measureContent, openContentCodec } from '#emails'
import type { AnswerMemory } from './answer-memory.ts'
import type { CallerConnection } from './caller-connection.ts'

type Received = Awaited<ReturnType<ContentReader['readAsReceived']>>

/** The content of one email. */
export interface HeldContent {
  /** Headers and the raw message are as sent; bodies and attachments are as submitted, before links were rewritten. */
  read(wanted: ReadonlySet<ContentPart>): Promise<ShownContent>
  /** As submitted. */
  decode(): Promise<Content>
}

interface EmailContentsDeps {
  db: Db
  clock: Clock
  domains: Domains
  secrets: Secrets
  answerMemory: AnswerMemory
}

type HeldEmail = Pick<Email, 'id' | 'tenantId' | 'contentId'>

/** Octets of memory for each octet of a content: decoded, rebuilt, and in the answer. */
const memoryFactor = 3
/** As above: stored, decoded, copied to the thread that encodes it, and stored again. */
const rewriteFactor = 4

export class EmailContents {
  readonly #deps: EmailContentsDeps
  readonly #reader: ContentReader
  readonly #codec: ContentCodec

  constructor(deps: EmailContentsDeps) {
    this.#deps = deps
    this.#reader = new ContentReader(deps)
    this.#codec = openContentCodec(deps.clock)
  }

  /** The result of `work` with the email's content; undefined after its retention. A large content waits for memory, as in `AnswerMemory`. */
  async use<Result>(
    email: HeldEmail,
    connection: CallerConnection | undefined,
    work: (content: HeldContent) => Promise<Result>,
  ): Promise<Result | undefined> {
    const { db, answerMemory } = this.#deps
    const stored = await measureContent(db, email)
    if (!stored) return undefined
    const { id: emailId, tenantId } = email
    return answerMemory.use({ tenantId, octets: stored.jsonOctets, memoryFactor, connection }, async () => {
      const body = stored.body ?? (await findContentBody(db, email))
      if (!body) return undefined
      return work({
        read: (wanted) => this.#reader.read(body, { emailId, tenantId }, wanted),
        decode: () => this.#codec.decode(body, tenantId),
      })
    })
  }

  /** The result of `work`, which reads the content and stores it again. A large one waits for memory, until the work is done. */
  async rewrite<Result>(
    email: Pick<Email, 'tenantId' | 'contentId'>,
    connection: CallerConnection | undefined,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const stored = await measureContent(this.#deps.db, email)
    const octets = stored?.jsonOctets ?? 0
    return this.#deps.answerMemory.during({ tenantId: email.tenantId, octets, memoryFactor: rewriteFactor, connection }, work)
  }

  /** As the recipient reads it, with tracking; undefined after its retention. The caller bounds the memory. */
  async readAsReceived(email: HeldEmail): Promise<Received | undefined> {
    const body = await findContentBody(this.#deps.db, email)
    return body && this.#reader.readAsReceived(body, { emailId: email.id, tenantId: email.tenantId })
  }
}
