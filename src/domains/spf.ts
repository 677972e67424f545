/**
 * SPF records as far as a sending domain's check needs them (RFC 7208): which TXT records are SPF, their mechanisms, and how many
 * look-ups evaluating one takes.
 */

export interface Mechanism {
  qualifier: '+' | '-' | '~' | '?'
  /** Lower case. */
  name: string
  /** What follows the colon, lower case, without a trailing dot; empty when there is none. */
  value: string
}

export interface SpfRecord {
  /** Those before and including the first `all`: what follows it is never looked at (section 5.1). */
  mechanisms: Mechanism[]
  afterAll: Mechanism[]
  /** The target of `redirect=`, which counts only without an `all` (section 6.1). */
  redirect: string | undefined
}

/** Section 4.5: the version section is followed by a space or by nothing. */
export const isSpf = (text: string): boolean => /^v=spf1(?: |$)/i.test(text)

const mostTerms = 300
const modifier = /^([a-z][a-z0-9._-]*)=(.*)$/
const mechanism = /^([+?~-]?)([a-z][a-z0-9-]*)(?::([^/]*))?(?:\/.*)?$/
const plainHost = (text: string) => text.replace(/\.$/, '')

/** Reads a record for which `isSpf` holds; what is no term at all is skipped, as it cannot be ours. */
export function parseSpf(text: string): SpfRecord {
  const record: SpfRecord = { mechanisms: [], afterAll: [], redirect: undefined }
  let ended = false
  for (const term of text.toLowerCase().split(/ +/).slice(1, mostTerms)) {
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

/** Section 4.6.4: more of these terms than this make every receiver give up on the record. */
export const mostLookups = 10
const lookingUp = new Set(['include', 'a', 'mx', 'ptr', 'exists'])

/**
 * How many look-ups evaluating the record takes, those of included records with it; stops counting beyond the limit, which also
 * ends loops. `spfOf` tells the SPF record of a name, or undefined when there is none or it cannot be learnt.
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
    if (count > mostLookups) return count
    // A macro's value is known to the receiver of a message only.
    const texts = await Promise.all(targets.filter((name) => name !== '' && !name.includes('%')).map(spfOf))
    level = texts.filter((text) => text !== undefined).map(parseSpf)
  }
  return count
}
