/** Damaged messages with every kind of change made by gateways, editors and attackers, from a seed. */

/** Numbers from 0 (inclusive) to 1 (exclusive), the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const junk = [
  '\r\n',
  '\n\n',
  '\r',
  '\0',
  '--',
  'Content-Type: multipart/mixed; boundary=x\n',
  '=?utf-8?b?',
  '<',
  '>',
  '@',
  '\u00ff\u00fe',
  '550 5.1.1 ',
  'Final-Recipient: rfc822;',
  '&#x41;',
  '"',
  ';',
  '=',
  '\u001b$B',
]

/** Applies one to six changes to `octets`; some insert a piece of `other`. */
export function mutated(octets: Buffer, other: Buffer, random: () => number): Buffer {
  let now = octets
  const changes = 1 + Math.floor(random() * 6)
  for (let change = 0; change < changes; change++) now = changeOf(now, other, random)
  return now.subarray(0, 2_000_000)
}

function changeOf(octets: Buffer, other: Buffer, random: () => number): Buffer {
  const at = Math.floor(random() * (octets.length + 1))
  const length = Math.floor(random() ** 3 * 2_000)
  const before = octets.subarray(0, at)
  const after = octets.subarray(at)
  switch (Math.floor(random() * 8)) {
    case 0:
      return before
    case 1:
      return Buffer.concat([before, after.subarray(length)])
    case 2: {
      const copy = Buffer.from(octets)
      for (let index = 0; index < 1 + length / 20 && copy.length > 0; index++)
        copy[Math.floor(random() * copy.length)] = Math.floor(random() * 256)
      return copy
    }
    case 3:
      return Buffer.concat([before, Buffer.from(junk[Math.floor(random() * junk.length)] as string, 'latin1'), after])
    case 4: {
      const start = Math.floor(random() * other.length)
      return Buffer.concat([before, other.subarray(start, start + length * 4), after])
    }
    case 5:
      return Buffer.concat([
        before,
        ...Array.from({ length: Math.floor(random() ** 4 * 3_000) }, () => after.subarray(0, 1 + (length % 40))),
        after,
      ])
    case 6: {
      const line = Buffer.from((junk[Math.floor(random() * junk.length)] as string).repeat(Math.floor(random() ** 4 * 20_000)), 'latin1')
      return Buffer.concat([before, line, after])
    }
    default:
      return Buffer.from(
        random() < 0.5 ? octets.toString('latin1').replace(/\n/g, '\r\n') : octets.toString('latin1').replace(/\n\n/, '\n'),
        'latin1',
      )
  }
}
