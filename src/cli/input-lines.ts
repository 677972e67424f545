/** Reads an input line by line with bounded memory: reports and skips a line that is too long. */

export interface InputLine {
  /** From 1. */
  number: number
  /** Without the line ending; undefined if the line was too long. */
  text: string | undefined
}

const lineFeed = 10

export async function* readLines(input: AsyncIterable<Uint8Array>, maxOctets: number): AsyncGenerator<InputLine> {
  let parts: Uint8Array[] = []
  let octets = 0
  let number = 0
  const taken = (): InputLine => {
    number += 1
    const line = { number, text: octets > maxOctets ? undefined : Buffer.concat(parts).toString('utf8') }
    parts = []
    octets = 0
    return line
  }
  const keep = (part: Uint8Array) => {
    octets += part.length
    if (octets <= maxOctets) parts.push(part)
    else parts = []
  }
  for await (const chunk of input) {
    let from = 0
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      keep(chunk.subarray(from, end))
      yield taken()
      from = end + 1
    }
    if (from < chunk.length) keep(chunk.subarray(from))
  }
  if (octets > 0) yield taken()
}
