/** Content-IDs of inline files: the file name, or for a name that cannot be one a name of its own, which the HTML then has in its place. */
import { refuseMailgunField } from './errors.ts'

/** The form that acceptance takes. */
const contentIdForm = /^[!-;=?-~]{1,250}$/

/** References in attributes and CSS. None contains the character with which it begins, so that the search takes linear time. */
const references = [/(")cid:([^"]{1,1000})(?=")/gi, /(')cid:([^']{1,1000})(?=')/gi, /([=(])cid:([^\s"'<>()=]{1,1000})/gi] as const

/** Each costs microseconds. */
const maxReferences = 10_000

interface InlineFiles<File> {
  files: (File & { contentId: string })[]
  /** HTML with the Content-IDs in place of the names. Throws the refusal of one with too many references. */
  referring: (html: string) => string
}

export function withContentIds<File extends { filename: string }>(given: readonly File[]): InlineFiles<File> {
  const ids = new Map<string, string>()
  const files = given.map((file, index) => {
    const { filename } = file
    const contentId = ids.get(filename) ?? (contentIdForm.test(filename) ? filename : `inline-${index + 1}@postrider`)
    ids.set(filename, contentId)
    return { ...file, contentId }
  })
  const isChanged = files.some(({ filename, contentId }) => filename !== contentId)
  let count = 0
  const changed = (all: string, before: string, name: string) => {
    if (++count > maxReferences) throw refuseMailgunField('html', `has more than ${maxReferences} references with cid:`, 'wrong')
    const id = ids.get(plainName(name)) ?? ids.get(decoded(plainName(name)))
    return id === undefined ? all : `${before}cid:${id}`
  }
  return { files, referring: (html) => (isChanged ? references.reduce((text, form) => text.replace(form, changed), html) : html) }
}

const plainName = (name: string) => name.trim().replaceAll('&amp;', '&')

/** RFC 2392 writes the Content-ID percent-encoded. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
