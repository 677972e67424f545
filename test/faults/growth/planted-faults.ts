/** Readers with planted faults: the search must find them and must accept the reader without a fault. */
import { reader } from './reader.ts'

const units = ['a', 'b', ',', 'key{i}=']
const longest = 4_194_304

export const readers = [
  reader({ name: 'is sound', longest, reads: [], units, read: (octets) => octets.toString().split(',').length }),
  reader({
    name: 'looks behind each comma to the end',
    longest,
    reads: [],
    units,
    read(octets) {
      const text = octets.toString('latin1')
      let found = 0
      for (let at = text.indexOf(','); at >= 0; at = text.indexOf(',', at + 1)) found += text.indexOf('\u00ff', at) < 0 ? 1 : 0
      return found
    },
  }),
  reader({
    name: 'backtracks without end',
    longest,
    reads: [],
    units,
    read: (octets) => /^(?:a|ab?|ba)*,$/.test(`${octets.toString().slice(0, 100_000)}`),
  }),
  reader({
    name: 'costs much for each octet',
    longest,
    reads: [],
    units,
    read: (octets) => octets.reduce((sum, octet) => sum + [...`${octet}`.repeat(40)].filter((one) => one > '3').length, 0),
  }),
  reader({
    name: 'begins late',
    longest,
    reads: [],
    units,
    read: (octets) =>
      octets
        .subarray(200_000)
        .toString('latin1')
        .split(/(?<=b),/).length,
  }),
  reader({
    name: 'works at each comma',
    longest: 262_144,
    reads: [],
    units,
    read(octets) {
      let sum = 0
      for (const octet of octets) if (octet === 0x2c) for (let round = 0; round < 100; round++) sum = (sum * 31 + round) | 0
      return sum
    },
  }),
]
