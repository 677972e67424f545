/**
 * An input as a recipe: fixed texts, and texts repeated as often as fits into the given number of octets. Plain data, so that a find can be
 * stored.
 */
import type { SeededRandom } from './seeded-random.ts'

/** `many`: repeated as often as fits, all such pieces equally often. `{i}` in a text is the number of the repetition. */
export interface Piece {
  of: [text: string, times: number][]
  many: boolean
}

export type Recipe = Piece[]

/** The building blocks of recipes for a reader. */
export interface Grammar {
  /** Texts before and after the rest, without which the reader would not look at the input. */
  frames: readonly (readonly [before: string, after: string])[]
  /** Texts with a meaning for the reader. */
  units: readonly string[]
  /** Opening and closing texts, for nesting. */
  nests: readonly (readonly [open: string, close: string])[]
  encoding: 'utf8' | 'latin1'
}

const maxPieces = 8

const once = (text: string): Piece => ({ of: [[text, 1]], many: false })

function written(texts: Piece['of'], round: number): string {
  return texts.map(([text, times]) => text.replaceAll('{i}', String(round)).repeat(times)).join('')
}

const octetsOf = (pieces: readonly Piece[], encoding: Grammar['encoding']) =>
  pieces.reduce((sum, { of }) => sum + Buffer.byteLength(written(of, 1000), encoding), 0)

/** Octets of the fixed pieces, which do not grow with the size. */
export const fixedOctets = (recipe: Recipe, encoding: Grammar['encoding']): number =>
  octetsOf(
    recipe.filter(({ many }) => !many),
    encoding,
  )

/** Returns the octets of a recipe, about `size` of them. */
export function cook(recipe: Recipe, size: number, encoding: Grammar['encoding']): Buffer {
  const fixed = fixedOctets(recipe, encoding)
  const round = octetsOf(
    recipe.filter(({ many }) => many),
    encoding,
  )
  const rounds = round === 0 ? 1 : Math.max(1, Math.floor((size - fixed) / round))
  const texts = recipe.map(({ of, many }) => {
    if (!many) return written(of, 0)
    if (!of.some(([text]) => text.includes('{i}'))) return written(of, 0).repeat(rounds)
    return Array.from({ length: rounds }, (_, at) => written(of, at)).join('')
  })
  return Buffer.from(texts.join(''), encoding)
}

/** Draws a random recipe. */
export function draw(grammar: Grammar, chance: SeededRandom): Recipe {
  const [before, after] = chance.of(grammar.frames)
  const pieces: Piece[] = []
  for (let left = chance.upTo(3) + 1; left > 0; left--) {
    if (grammar.nests.length > 0 && chance.below(0.2)) pieces.push(...nested(grammar, chance))
    else
      pieces.push({
        of: texts(grammar, chance),
        many: left === 1 ? !pieces.some(({ many }) => many) || chance.below(0.6) : chance.below(0.7),
      })
  }
  return [once(before), ...pieces, once(after)].filter(({ of }) => of.some(([text]) => text !== ''))
}

function nested(grammar: Grammar, chance: SeededRandom): Piece[] {
  const [open, close] = chance.of(grammar.nests)
  return [
    { of: [[open, 1]], many: true },
    { of: texts(grammar, chance), many: false },
    { of: [[close, 1]], many: chance.below(0.7) },
  ]
}

const common = [
  ' ',
  '\n',
  '\r\n',
  '\r\n\r\n',
  '\t',
  ',',
  ';',
  ':',
  '.',
  '@',
  '<',
  '>',
  '"',
  "'",
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
  '\\',
  '/',
  '=',
  '?',
  '-',
  '_',
  '&',
  '#',
  '%',
  '*',
  '|',
  '\0',
  'a',
  '0',
  '1',
  'ä',
  '　',
  '{i}',
]

function text(grammar: Grammar, chance: SeededRandom): string {
  const unit = chance.below(0.7) ? chance.of(grammar.units) : chance.of(common)
  if (chance.below(0.9) || unit.length < 3) return unit
  const start = chance.upTo(unit.length - 1)
  return unit.slice(start, start + 1 + chance.upTo(unit.length - start))
}

function texts(grammar: Grammar, chance: SeededRandom): Piece['of'] {
  return Array.from({ length: 1 + chance.upTo(3) }, () => {
    const times = chance.below(0.85) ? 1 : chance.below(0.7) ? 1 + chance.upTo(20) : 1 + chance.upTo(2000)
    return [text(grammar, chance), times] satisfies Piece['of'][number]
  })
}

/** Returns a variant that differs by one step. */
export function mutate(recipe: Recipe, grammar: Grammar, chance: SeededRandom): Recipe {
  const next = structuredClone(recipe)
  const at = chance.upTo(next.length)
  const piece = next[at] as Piece
  const steps: (() => unknown)[] = [
    () => (piece.of = texts(grammar, chance)),
    () => piece.of.push(...texts(grammar, chance)),
    () => piece.of.splice(chance.upTo(piece.of.length), 1, [text(grammar, chance), 1]),
    () => (piece.many = !piece.many),
    () => piece.of.reverse(),
    () => ((piece.of[0] as Piece['of'][number])[1] = 1 + chance.upTo(200)),
    () => next.splice(at, 0, { of: texts(grammar, chance), many: chance.below(0.5) }),
    () => next.splice(at, 1),
    () => next.splice(chance.upTo(next.length), 0, structuredClone(piece)),
  ]
  chance.of(steps)()
  const left = next.filter(({ of }) => of.length > 0).slice(0, maxPieces)
  return left.some(({ many }) => many) ? left : draw(grammar, chance)
}

/** Yields smaller recipes, the smallest first. */
export function* smaller(recipe: Recipe): Generator<Recipe> {
  for (const at of recipe.keys()) if (recipe.length > 1) yield recipe.toSpliced(at, 1)
  for (const [at, piece] of recipe.entries()) {
    const changed = (of: Piece['of']) => recipe.toSpliced(at, 1, { ...piece, of })
    for (const n of piece.of.keys()) if (piece.of.length > 1) yield changed(piece.of.toSpliced(n, 1))
    if (piece.many && recipe.filter(({ many }) => many).length > 1) yield recipe.toSpliced(at, 1, { ...piece, many: false })
    for (const [n, [one, times]] of piece.of.entries()) {
      if (times > 1) yield changed(piece.of.toSpliced(n, 1, [one, times > 3 ? Math.floor(times / 2) : 1]))
      if (one.length < 2) continue
      const half = Math.ceil(one.length / 2)
      for (const part of [one.slice(half), one.slice(0, half), one.slice(1), one.slice(0, -1)])
        yield changed(piece.of.toSpliced(n, 1, [part, times]))
    }
  }
}

/** Readable form: `"From: " + ("a@b, " …)`. */
export function shown(recipe: Recipe): string {
  const one = ([text, times]: Piece['of'][number]) => `${JSON.stringify(text)}${times === 1 ? '' : ` × ${times}`}`
  return recipe.map(({ of, many }) => (many ? `many (${of.map(one).join(' ')})` : of.map(one).join(' '))).join(' + ')
}
