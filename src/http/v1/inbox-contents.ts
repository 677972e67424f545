/** The contents of the emails on a page of the test inbox, which together would be a gigabyte. */
import { nextTurn } from '#base'

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
