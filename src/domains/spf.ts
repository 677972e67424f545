/**
 * SPF parsing as needed for domain checks (RFC 7208): recognises SPF records, lists their mechanisms, and counts the lookups of an
 * evaluation.
 */

export interface Mechanism {
  qualifier: '+' | '-' | '~' | '?'
  /** Lower case. */
  name: string
  /** The text after the colon, lower case, without a trailing dot; may be empty. */
  value: string
}

export interface SpfRecord {
  /** Mechanisms up to and including the first `all`; later ones are ignored (section 5.1). */
  mechanisms: Mechanism[]
  afterAll: Mechanism[]
  /** The target of `redirect=`, which is ignored if there is an `all` (section 6.1). */
  redirect: string | undefined
}

/** Section 4.5: the version is followed by a space or the end. */
export const isSpf = (text: string): boolean => /^v=spf1(?: |$)/i.test(text)

/** The first term is the version. */
const maxTerms = 300
/** Longer terms are no mechanism: a name has at most 253 characters, and a macro expands to one. */
const maxTermLength = 1000
const modifier = /^([a-z][a-z0-9._-]*)=(.*)$/
const mechanism = /^([+?~-]?)([a-z][a-z0-9-]*)(?::([^/]*))?(?:\/.*)?$/
const plainHost = (text: string) => text.replace(/\.$/, '')

/** Parses a record that passes `isSpf`. Malformed terms are skipped, because they cannot be Postrider's. */
export function parseSpf(text: string): SpfRecord {
  const record: SpfRecord = { mechanisms: [], afterAll: [], redirect: undefined }
  let ended = false
  for (const term of text.toLowerCase().split(/ +/, maxTerms).slice(1)) {
    if (term.length > maxTermLength) continue
    const modified = modifier.exec(term)
    if (modified) {
      if (modified[1] === 'redirect') record.redirect ??= plainHost(modified[2] ?? '')
      continue
    }
    const parts = mechanism.exec(term)
    if (!parts) continue
    const [, qualifier, name = '', value = ''] = parts
    const one = { qualifier: (qualifier || '+') as Mechanism['qualifier'], name, value: plainHost(value) }
    if (ended) record.afterAll.push(one)
    else record.mechanisms.push(one)
    if (name === 'all') ended = true
  }
  if (ended) record.redirect = undefined
  return record
}

/** Section 4.6.4: with more lookup terms than this, receivers return an error for the record. */
export const maxLookups = 10
const lookingUp = new Set(['include', 'a', 'mx', 'ptr', 'exists'])

/**
 * Counts the lookups of evaluating the record, including included records. Stops beyond the limit, which also ends loops. `spfOf` returns a
 * name's SPF record, or undefined if it is missing or the lookup fails.
 */
export async function countLookups(record: SpfRecord, spfOf: (name: string) => Promise<string | undefined>): Promise<number> {
  let count = 0
  let level = [record]
  while (level.length > 0) {
    const targets: string[] = []
    for (const { mechanisms, redirect } of level) {
      for (const { name, value } of mechanisms) {
        if (!lookingUp.has(name)) continue
        count++
        if (name === 'include') targets.push(value)
      }
      if (redirect !== undefined) {
        count++
        targets.push(redirect)
      }
    }
    if (count > maxLookups) return count
    // A macro's value is known only to the receiver of a message.
    const texts = await Promise.all(targets.filter((name) => name !== '' && !name.includes('%')).map(spfOf))
    level = texts.filter((text) => text !== undefined).map(parseSpf)
  }
  return count
}
