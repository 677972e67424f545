/**
 * Phrases of programs and providers in many languages for failures, delays and auto-responses, from rules/phrases.json, and the normal
 * form in which text is compared with them.
 */
import { checkFields, type Entry, identifiedOf, readRuleFile, refuse, textsOf } from './rule-files.ts'

/** Normal form for comparison: NFKC, lower case, single spaces. */
export const plainWords = (text: string): string =>
  ` ${text
    .normalize('NFKC')
    // One ligature becomes up to 18 characters.
    .slice(0, 2 * text.length)
    .toLowerCase()
    .replace(/[\u2018\u2019\u00b4`]/g, "'")
    .replace(/[\u201c\u201d\u201e\u00ab\u00bb]/g, '"')
    .replace(/\s+/g, ' ')
    .trim()} `

/** The phrases of a field: separated by bars, in the form of `plainWords`, in which text is searched for them. Throws at the first mistake. */
export const phrasesOf = (entry: Entry, field: string): readonly string[] =>
  textsOf(entry, field).flatMap((line, index) => {
    const phrases = line.split('|').map((phrase) => phrase.trim())
    if (phrases.includes('')) refuse(entry, `an empty phrase in "${field}"`, field, index)
    // A check of each phrase would take three times as long at every start.
    const odd = line === plainForm(line) ? undefined : phrases.find((phrase) => phrase !== plainForm(phrase))
    if (odd !== undefined) refuse(entry, `the phrase "${odd}" is never found; write "${plainForm(odd)}"`, field, index)
    return phrases
  })

const plainForm = (text: string) => plainWords(text).trim()

export function parsePhraseLists(file: Entry): ReadonlyMap<string, readonly string[]> {
  checkFields(file, ['lists'])
  return new Map(
    identifiedOf(file, 'lists', new Set()).map((list) => {
      checkFields(list, ['id', 'phrases'])
      return [list.id, phrasesOf(list, 'phrases')]
    }),
  )
}

const file = readRuleFile('phrases.json')
export const phraseLists = parsePhraseLists(file)

const phrasesNamed = (id: string): readonly string[] => phraseLists.get(id) ?? refuse(file, `no list "${id}"`, 'lists')

/** Subjects of failures. */
export const failureSubjects = phrasesNamed('failure-subjects')

/** In the text: a program's words for a message that did not arrive. */
export const failureWords = phrasesNamed('failure-words')

/** Subjects of delay notices. */
export const delaySubjects = phrasesNamed('delay-subjects')

/**
 * In the text: the message is still queued. The words concern the message, because failures may quote a remote server's `try again later`.
 */
export const delayWords = phrasesNamed('delay-words')

/** A permanent failure in texts that mention delays too. */
export const gaveUpWords = phrasesNamed('gave-up-words')

/** The retry time expired. The words concern a message, a queue or a delivery, never an account. */
export const expiryWords = phrasesNamed('expiry-words')

/** The same, in words that a refusal may contain too. */
export const tiredWords = phrasesNamed('tired-words')

/** Prefixes and subjects that only vacation programs and mail clients write. */
export const autoReplySubjects = phrasesNamed('auto-reply-subjects')

/** Subjects that people write too: an auto-response only with other evidence. */
export const absenceSubjects = phrasesNamed('absence-subjects')

/** In the text of mail without a header that declares it. */
export const autoReplyWords = phrasesNamed('auto-reply-words')

/** Mail that asks the sender to prove to be a person. */
export const challengeWords = phrasesNamed('challenge-words')

/** Subjects of complaints that come without a report part. */
export const complaintSubjects = phrasesNamed('complaint-subjects')
