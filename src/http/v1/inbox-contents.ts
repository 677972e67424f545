/** The contents of the emails on a page of the test inbox, which together would be a gigabyte. */
import { nextTurn } from '#base'
import { rebuildMessage } from '#delivery'
import { decodeContent, findContentBody, type ReceivedEmail } from '#emails'
import { linksOf, readMessage } from '#mail'
import { openTokens } from '#tracking'
import type { ApiDeps } from './define-endpoint.ts'

export interface InboxContents {
  html: string | null
  text: string
  links: string[]
}

export const noContents: InboxContents = { html: null, text: '', links: [] }

/**
 * Reads the contents of `emails` in order, each whole, until they have `maxCharacters` together; undefined for the emails after that. Other
 * requests have a turn after each.
 */
export async function contentsWithin<One>(
  maxCharacters: number,
  emails: readonly One[],
  read: (email: One) => Promise<InboxContents>,
): Promise<(InboxContents | undefined)[]> {
  const contents: (InboxContents | undefined)[] = []
  let characters = 0
  for (const email of emails) {
    const one = characters < maxCharacters ? await read(email) : undefined
    contents.push(one)
    if (!one) continue
    characters += (one.html?.length ?? 0) + one.text.length
    await nextTurn()
  }
  return contents
}

/** As sent; empty if the content is past its retention. */
export async function readContents(email: ReceivedEmail, { db, secrets }: Pick<ApiDeps, 'db' | 'secrets'>): Promise<InboxContents> {
  const body = await findContentBody(db, email)
  if (!body) return noContents
  const recipient = { tenantId: email.tenantId, emailId: email.id }
  const { octets } = rebuildMessage(decodeContent(body), recipient, openTokens(secrets))
  await nextTurn()
  const read = readMessage(octets)
  await nextTurn()
  return { html: read.html ?? null, text: read.text ?? '', links: linksOf(read) }
}
