/**
 * The content of an email for /v1 and the APIs of other vendors. The largest email takes a fifth of a second to rebuild and read; other
 * requests have a turn between the steps.
 */
import { createHash } from 'node:crypto'
import { nextTurn } from '#base'
import { messageAsSent, rebuildMessage } from '#delivery'
import type { Domains } from '#domains'
import type { Content, Email, ReturnPaths } from '#emails'
import { readMessage, textFromHtml } from '#mail'
import type { Tokens } from '#tracking'

export type ContentPart = 'content' | 'headers' | 'attachments' | 'raw'

export interface ShownAttachment {
  filename: string
  contentType: string
  content: Buffer
  /** SHA-256, in hexadecimal. */
  hash: string
}

/** The wanted parts; the others are undefined, as is the HTML of an email without any. */
export interface ShownContent {
  html?: string | undefined
  text?: string | undefined
  headers?: Record<string, string>
  attachments?: readonly ShownAttachment[]
  /** As sent. */
  raw?: Buffer
}

interface ContentDeps {
  domains: Domains
  tokens: Tokens
  returnPaths: ReturnPaths
}

/** Headers and the raw message are as sent; bodies and attachments are as submitted, before links were rewritten. */
export async function readContent(content: Content, email: Email, wanted: ReadonlySet<string>, deps: ContentDeps): Promise<ShownContent> {
  const { message } = content
  const recipient = { tenantId: email.tenantId, emailId: email.id }
  const shown: ShownContent = {}
  await nextTurn()
  if (wanted.has('headers') || wanted.has('raw')) {
    const sent = await messageAsSent(content, recipient, deps)
    await nextTurn()
    if (wanted.has('headers')) shown.headers = readMessage(sent).headers
    if (wanted.has('raw')) shown.raw = sent
    await nextTurn()
  }
  const needsRead = message.kind === 'raw' && (wanted.has('content') || wanted.has('attachments'))
  const read = needsRead ? await readSubmitted(content, recipient, deps.tokens) : undefined
  if (wanted.has('content')) Object.assign(shown, bodiesOf(message, read))
  if (wanted.has('attachments')) shown.attachments = await attachmentsOf(message, read)
  await nextTurn()
  return shown
}

type ReadMessage = ReturnType<typeof readMessage>

async function readSubmitted(content: Content, recipient: { tenantId: string; emailId: string }, tokens: Tokens) {
  const { tracking: _, ...given } = content
  const { octets } = rebuildMessage(given, recipient, tokens)
  await nextTurn()
  const read = readMessage(octets)
  await nextTurn()
  return read
}

function bodiesOf(message: Content['message'], read: ReadMessage | undefined): Pick<ShownContent, 'html' | 'text'> {
  const html = message.kind === 'parts' ? message.html : read?.html
  const text = message.kind === 'parts' ? message.text : read?.text
  return { html, text: text ?? (html === undefined ? '' : textFromHtml(html)) }
}

async function attachmentsOf(message: Content['message'], read: ReadMessage | undefined): Promise<ShownAttachment[]> {
  const shown: ShownAttachment[] = []
  for (const given of message.kind === 'parts' ? message.attachments : (read?.attachments ?? [])) {
    const content = typeof given.content === 'string' ? Buffer.from(given.content, 'base64') : Buffer.from(given.content)
    const hash = createHash('sha256').update(content).digest('hex')
    shown.push({ filename: given.filename, contentType: given.contentType, content, hash })
    await nextTurn()
  }
  return shown
}
