/** A reader of external octets, as the search uses it. */
import { readFileSync } from 'node:fs'
import type { Grammar } from './input-recipe.ts'

export interface Reader extends Grammar {
  name: string
  /** Octets of the largest input that the program passes to it. */
  longest: number
  /** Set where more than `most.msPer100Kb` is allowed. */
  msPer100Kb?: number
  /** The exported functions that it stands for: `src/mail/read-message.ts readMessage`. */
  reads: readonly string[]
  /** An exception counts as a refusal. */
  read(octets: Buffer): unknown
}

interface Declared {
  name: string
  msPer100Kb?: number
  longest: number
  reads: readonly string[]
  /** More source and rule files whose words are units, in addition to the files of `reads`. */
  words?: readonly string[]
  frames?: Grammar['frames']
  units: readonly string[]
  nests?: Grammar['nests']
  encoding?: Grammar['encoding']
  read(octets: Buffer): unknown
}

const root = new URL('../../../', import.meta.url)

/** Makes a reader whose units are the given units and the words of its own source, so that the search also tries words added later. */
export function reader({ words = [], frames = [['', '']], nests = [], encoding = 'utf8', ...declared }: Declared): Reader {
  const files = new Set([...declared.reads.map((one) => one.split(' ')[0] as string), ...words])
  const found = [...files].flatMap((file) => (file.endsWith('.json') ? dataWordsIn : wordsIn)(readFileSync(new URL(file, root), 'utf8')))
  // Repeats the declared units so that they make up half of the drawn units.
  const given =
    found.length === 0
      ? [...declared.units]
      : Array.from({ length: Math.ceil(found.length / declared.units.length) }, () => declared.units).flat()
  return { ...declared, frames, nests, encoding, units: [...given, ...new Set(found)] }
}

/** The texts that a source file compares with: its strings, and the words of its regular expressions. */
function wordsIn(source: string): string[] {
  const code = source.replace(/^\s*(?:\*|\/\*|\/\/).*$/gm, '').replace(/^(?:import|export) .* from .*$/gm, '')
  const strings = [...code.matchAll(/'([^'\\\n]{1,60})'/g)].map(([, text = '']) => text)
  const lists = [...code.matchAll(/`([^`$]{1,20000})`/g)].flatMap(([, text = '']) => text.split(/\s*[|\n]\s*/))
  const patterns = [...code.matchAll(/(?<=[(=,:?&|!\s])\/((?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/[dgimsuvy]*/g)]
  const parts = patterns.flatMap(([, text = '']) =>
    text.replace(/\\[bBdDsSwW]|\\[pu]\{[^}]*\}|\(\?[:=!<]*|\{\d+(?:,\d*)?\}/g, '|').split(/\[(?:[^\]\\]|\\.)*\]|[|()?*+^$\\]/),
  )
  return [...strings, ...lists, ...parts].filter((text) => text.trim() !== '' && text.length <= 60)
}

/** The words of a rule file: the alternatives in its strings. */
function dataWordsIn(json: string): string[] {
  const strings: string[] = []
  JSON.parse(json, (_, value: unknown) => {
    if (typeof value === 'string') strings.push(value)
  })
  return strings.flatMap((text) => text.split(/[|()[\]{}]/)).filter((text) => text.trim() !== '' && text.length <= 60)
}
