/** Encodes large answers as JSON. JSON.stringify needs 80 ms for the largest email; here other requests have a turn between the steps. */
import { nextTurn } from '#base'

/** About 5 ms of encoding. */
const stepLength = 1_048_576

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
    await nextTurn()
  }
  pieces.push(Buffer.from(text + after))
  return Buffer.concat(pieces)
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
