/** Colours for the terminal: only where standard output is one, and not with NO_COLOR (node:util checks both). */
import { styleText } from 'node:util'

const colours = {
  green: ['ok', 'OK', 'sent', 'verified', 'trusted', 'published'],
  yellow: ['warning', 'softfail', 'pending', 'held', 'not verified', 'disabled', 'lookup failed'],
  red: ['problem', 'hardfail', 'bounced', 'missing', 'wrong', 'Missing', 'Invalid'],
} as const

const colourOf = new Map(
  Object.entries(colours).flatMap(([colour, words]) =>
    words.map((word): [string, keyof typeof colours] => [word, colour as keyof typeof colours]),
  ),
)

/** A status word in the colour of its meaning; `width` pads it first. Unknown words have no colour. */
export function shade(word: string, width = 0): string {
  const colour = colourOf.get(word)
  const padded = word.padEnd(width)
  return colour === undefined ? padded : styleText(colour, padded)
}

/** A heading of a help text. */
export const strong = (text: string) => styleText('bold', text)

/** The first line of an error, for standard error. */
export const alarming = (lines: string) => {
  const [first = '', ...rest] = lines.split('\n')
  return [styleText('red', first, { stream: process.stderr }), ...rest].join('\n')
}
