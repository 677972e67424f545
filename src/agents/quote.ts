/**
 * Text from outside, as agents get it: one line of bounded length, without characters that a terminal, a page or a model may obey, and with
 * masked addresses. A quoted text stands only in a field named `untrusted`.
 */

/** Usual length of a quoted text, in characters. */
const usualLength = 300
/** Of each text only this part is read, so that a megabyte costs no more than a line. */
const readLength = 4096

/**
 * Control and format characters: line breaks, ANSI escapes, bidirectional overrides, zero-width characters and tags. Further variation
 * selectors, which can carry hidden text, halves of characters, and code points without a meaning of their own.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u{fe00}-\u{fe0f}\u{e0100}-\u{e01ef}]+/gu
const spaces = /\p{Zs}+/gu
/** Characters of markup, and characters that look like them. Without them a text has no tag, no link, no code and no fence. */
const markup: Readonly<Record<string, string>> = { '<': '‹', '>': '›', '`': "'", '[': '(', ']': ')', '{': '(', '}': ')', '|': '¦' }
const ofMarkup = /[<>`[\]{}|]/g

/** One line, in a single pass over a bounded part of the text. A longer one ends with `…`. */
function oneLine(text: string, maxLength: number): string {
  const read = text
    .slice(0, readLength)
    .replace(unseen, ' ')
    .replace(spaces, ' ')
    .replace(ofMarkup, (mark) => markup[mark] ?? ' ')
    .trim()
  // By code points: a half of a character would be invalid in JSON for some readers.
  const shown = read.length > maxLength ? [...read.slice(0, maxLength * 2)].slice(0, maxLength).join('') : read
  return shown.length < read.length || text.length > readLength ? `${shown}…` : shown
}

/** An address in running text. The parts are bounded, so the search is linear. */
const address = /[^\s@‹›()<>[\]"',;:]{1,64}@([^\s@‹›()<>[\]"',;:]{1,255})/g

/** `ann@example.com` becomes `a***@example.com`. */
const masked = (text: string) => text.replace(address, (whole, domain: string) => `${String.fromCodePoint(whole.codePointAt(0) ?? 42)}***@${domain}`)

export interface Quoter {
  /** The text; null for an absent one. */
  text(value: unknown, maxLength?: number): string | null
  /** Each text of a list, at most ten. */
  list(values: unknown): string[]
  /** Every text of a flat object, at most 20; other values are left out. */
  fields(value: unknown): Record<string, string>
}

const maxListed = 10
const maxFields = 20
const fieldLength = 200

export function openQuoter({ showAddresses }: { showAddresses: boolean }): Quoter {
  const quoted = (value: string, maxLength: number) => {
    const line = oneLine(value, maxLength)
    return showAddresses ? line : masked(line)
  }
  return {
    text: (value, maxLength = usualLength) => (typeof value === 'string' ? quoted(value, maxLength) : null),
    list: (values) =>
      Array.isArray(values)
        ? values.filter((one) => typeof one === 'string').slice(0, maxListed).map((one) => quoted(one, fieldLength))
        : [],
    fields(value) {
      if (typeof value !== 'object' || value === null) return {}
      const entries = Object.entries(value).flatMap(([name, one]) =>
        typeof one === 'string' || typeof one === 'number' || typeof one === 'boolean'
          ? [[quoted(name, fieldLength), quoted(String(one), fieldLength)] as const]
          : [],
      )
      return Object.fromEntries(entries.slice(0, maxFields))
    },
  }
}
