/**
 * Encodes large answers as JSON. JSON.stringify needs 80 ms for the largest email; here other requests have a turn between the steps.
 */
import { nextStep } from '#base'

/** About a millisecond of encoding. */
const stepLength = 262_144

/**
 * The octets that JSON.stringify gives for the value: strings, numbers, booleans, null, undefined, arrays and plain objects of them; between
 * `before` and `after`.
 */
export async function jsonInSteps(value: unknown, before = '', after = ''): Promise<Buffer> {
  const pieces: Buffer[] = []
  let text = before
  for (const piece of piecesOf(value)) {
    text += piece
    if (text.length < stepLength) continue
    pieces.push(Buffer.from(text))
    text = ''
    await nextStep()
  }
  pieces.push(Buffer.from(text + after))
  return join(pieces)
}

/** In steps too: 45 MB at once would take a tenth of a second, most of it for new memory. */
async function join(pieces: Buffer[]): Promise<Buffer> {
  const [first] = pieces
  if (first && pieces.length === 1) return first
  const whole = Buffer.allocUnsafeSlow(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const [index, piece] of pieces.entries()) {
    at += piece.copy(whole, at)
    // So that V8 can free it.
    pieces[index] = Buffer.alloc(0)
    await nextStep()
  }
  return whole
}

function* piecesOf(value: unknown): Generator<string> {
  if (typeof value === 'string' && value.length > stepLength) yield* piecesOfText(value)
  else if (Array.isArray(value)) {
    let before = '['
    for (const item of value) {
      yield before
      yield* piecesOf(item === undefined ? null : item)
      before = ','
    }
    yield before === '[' ? '[]' : ']'
  } else if (typeof value === 'object' && value !== null) {
    let before = '{'
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined) continue
      yield `${before}${JSON.stringify(name)}:`
      yield* piecesOf(member)
      before = ','
    }
    yield before === '{' ? '{}' : '}'
  } else yield JSON.stringify(value)
}

function* piecesOfText(text: string): Generator<string> {
  yield '"'
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + stepLength)
    // Not within a surrogate pair: half of one would be written as an escape.
    if (end < text.length && (text.charCodeAt(end) & 0xfc00) === 0xdc00) end--
    yield JSON.stringify(text.slice(at, end)).slice(1, -1)
    at = end
  }
  yield '"'
}
