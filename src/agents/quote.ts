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
/** Characters of markup and of JSON, and characters that look like them. Without them a text has no tag, link, code, fence or object. */
const markup: Readonly<Record<string, string>> = {
  '<': '‹',
  '>': '›',
  '`': "'",
  '[': '(',
  ']': ')',
  '{': '(',
  '}': ')',
  '|': '¦',
  '"': '”',
  '\\': '∖',
}
const ofMarkup = /[<>`[\]{}|"\\]/g

/** An address in running text, also in a URL. The parts are bounded, so the search is linear. */
const address = /[^\s@‹›”(),;:]{1,64}(?:@|%40)([^\s@‹›”(),;:]{1,255})/g
const firstOf = (text: string) => String.fromCodePoint(text.codePointAt(0) ?? 0x2a)

/** `ann@example.com` becomes `a***@example.com`. */
const masked = (text: string) => text.replace(address, (whole, domain: string) => `${firstOf(whole)}***@${domain}`)

/** One line of the bounded beginning of the text. */
const oneLine = (text: string) =>
  text
    .slice(0, readLength)
    .replace(unseen, ' ')
    .replace(spaces, ' ')
    .replace(ofMarkup, (mark) => markup[mark] ?? ' ')
    .trim()

/** By code points: a half of a character would be invalid in JSON for some readers. A cut text ends with `…`. */
function cut(line: string, maxLength: number, isCut: boolean): string {
  const shown =
    line.length > maxLength
      ? Array.from(line.slice(0, maxLength * 2))
          .slice(0, maxLength)
          .join('')
      : line
  return isCut || shown.length < line.length ? `${shown}…` : shown
}

export interface Quoter {
  /** The text; null for an absent one. */
  text(value: unknown, maxLength?: number): string | null
  /** A text that is one address, whose local part may have spaces. */
  address(value: unknown): string | null
  /** Each text of a list, at most ten. */
  list(values: unknown): string[]
  /** The first texts, numbers and booleans of a flat object. */
  fields(value: unknown): Record<string, string>
}

const maxListed = 10
const maxFields = 12
const nameLength = 60
const fieldLength = 200

export function openQuoter({ showAddresses }: { showAddresses: boolean }): Quoter {
  const quoted = (value: string, maxLength: number) => {
    const line = oneLine(value)
    return cut(showAddresses ? line : masked(line), maxLength, value.length > readLength)
  }
  const isShown = (value: unknown) => typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  return {
    text: (value, maxLength = usualLength) => (typeof value === 'string' ? quoted(value, maxLength) : null),
    address(value) {
      if (typeof value !== 'string') return null
      const at = value.lastIndexOf('@')
      if (showAddresses || at < 1) return quoted(value, usualLength)
      return cut(oneLine(`${firstOf(value)}***${value.slice(at)}`), usualLength, false)
    },
    list: (values) => {
      const texts = Array.isArray(values) ? values.filter((one) => typeof one === 'string') : []
      return texts.slice(0, maxListed).map((one) => quoted(one, fieldLength))
    },
    fields(value) {
      const entries = Object.entries(typeof value === 'object' && value !== null ? value : {}).filter(([, one]) => isShown(one))
      return Object.fromEntries(
        entries.slice(0, maxFields).map(([name, one]) => [quoted(name, nameLength), quoted(String(one), fieldLength)]),
      )
    },
  }
}
