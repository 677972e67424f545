/**
 * Searches for inputs whose cost grows faster than their length: more than 50 ms of processor time per 100 KB, or more than 2.6 times the
 * time for twice the length. Half of the inputs are new, half are one step away from the most expensive so far.
 */

import { draw, fixedOctets, mutate, type Recipe, shown, smaller } from './input-recipe.ts'
import type { Measure } from './measure.ts'
import type { Costs, Job } from './measure-worker.ts'
import type { Reader } from './reader.ts'
import { openSeededRandom, type SeededRandom } from './seeded-random.ts'

export interface Find {
  reader: string
  recipe: Recipe
  why: string
}

/** The limits that every reader must keep. */
export const limits = { msPer100Kb: 50, growth: 2.6 }

const hundredKb = 102_400
/** Shorter times are too inaccurate to compare. */
const minMs = 5
const largestUsual = 262_144
const usualSizes = [1_024, 4_096, 16_384, 65_536, largestUsual]
const largestOfAll = 1_048_576
const largeSizes = [65_536, 262_144, largestOfAll]
/** A shorter input is read repeatedly until the total reaches this many octets. */
const batchOctets = 65_536
const kept = 8

/** Each size is four times the one before, up to the longest input. */
function sizesFor({ longest }: Reader, isLarge: boolean): { sizes: number[]; times: number } {
  if (longest >= largestUsual) return { sizes: isLarge && longest >= largestOfAll ? largeSizes : usualSizes, times: 1 }
  const sizes = [longest / 64, longest / 16, longest / 4, longest].map(Math.floor).filter((size) => size >= 16)
  return { sizes, times: Math.max(1, Math.ceil(batchOctets / longest)) }
}

const per100Kb = ({ size, ms }: Costs[number], times: number) => ms / Math.max(1, (size * times) / hundredKb)

/** Returns the first size that is too expensive. An input below 100 KB may cost as much as one of 100 KB. */
const dear = ({ msPer100Kb = limits.msPer100Kb }: Reader, costs: Costs, times: number) =>
  costs.find((one) => per100Kb(one, times) > msPer100Kb)

const dearMsOf = (sizes: readonly number[], times: number) =>
  sizes.reduce((sum, size) => sum + limits.msPer100Kb * Math.max(1, (size * times) / hundredKb), 0)

/** Returns the factor by which the cost grows for a doubled length, between the last two sizes. */
function growthOf(costs: Costs): number {
  const [small, large] = costs.slice(-2)
  if (!small || !large || large.ms < minMs || large.size < small.size * 1.5) return 1
  const doublings = Math.log2(large.size / small.size)
  return (large.ms / Math.max(small.ms, 0.05)) ** (1 / doublings)
}

export interface Looked {
  find: Find | undefined
  tried: number
}

/** Returns the limit that this recipe breaks, if any. Measures often enough that a busy machine does not cause a false find. */
export async function judge(reader: Reader, recipe: Recipe, measure: Measure): Promise<string | undefined> {
  return (await judgeAt(reader, recipe, measure, false, 5)) ?? (await judgeAt(reader, recipe, measure, true, 5))
}

async function judgeAt(reader: Reader, recipe: Recipe, measure: Measure, isLarge: boolean, runs: number): Promise<string | undefined> {
  const { sizes, times } = sizesFor(reader, isLarge)
  const job = { reader: reader.name, recipe, times, runs, stopMs: 2 * limits.msPer100Kb, dearMs: dearMsOf(sizes, times) }
  const tooLong = ({ size, ms }: Costs[number]) => `${size} octets took over ${Math.round(ms)} ms`
  const first = await measure.run({ ...job, sizes, runs: Math.min(runs, 2) })
  if (first.endless) return tooLong(first.endless)
  const suspect = dear(reader, first.costs, times)
  if (suspect) {
    const again = await measure.run({ ...job, sizes: [suspect.size] })
    const sure = dear(reader, again.costs, times)
    if (again.endless) return tooLong(again.endless)
    if (sure) return `${sure.size} octets${times > 1 ? ` ${times} times` : ''} took ${sure.ms.toFixed(0)} ms`
  }
  const largest = first.costs.at(-1)
  if (!largest || growthOf(first.costs) <= limits.growth) return undefined
  return climb(reader, job, Math.min(largest.size, reader.longest), measure)
}

/**
 * Doubles the repeated part as long as the cost grows too fast: beside long fixed texts, twice the length would more than double the
 * repeated part. A single jump is not a fault: it occurs where the input passes a limit of the reader. Ends when the cost is too high, or at
 * the maximum length.
 */
async function climb(reader: Reader, job: Omit<Job, 'sizes'>, from: number, measure: Measure): Promise<string | undefined> {
  const costAt = async (size: number) => {
    const { costs, endless } = await measure.run({
      ...job,
      sizes: [size],
      stopMs: Number.POSITIVE_INFINITY,
      dearMs: dearMsOf([size], job.times),
    })
    return endless ? { size, ms: endless.ms } : (costs[0] as Costs[number])
  }
  const ratios: number[] = []
  const fixed = Math.min(fixedOctets(job.recipe, reader.encoding), from - 4)
  const doubled = (size: number) => fixed + (size - fixed) * 2
  let size = fixed + Math.floor((from - fixed) / 4)
  let before = await costAt(size)
  while (doubled(size) <= reader.longest) {
    size = doubled(size)
    const now = await costAt(size)
    const ratio = now.ms / Math.max(before.ms, 0.05)
    if (now.ms < minMs) ratios.length = 0
    else {
      if (ratio <= limits.growth) return undefined
      ratios.push(ratio)
    }
    if (ratios.length > 1 && (dear(reader, [now], job.times) || doubled(size) > reader.longest))
      return `twice as much took ${Math.min(...ratios).toFixed(1)} times as long, ${ratios.length} times in a row, up to ${now.ms.toFixed(0)} ms for ${size} octets`
    before = now
  }
  return undefined
}

/** Searches one reader until `isOver` or the first find. */
export async function search(
  reader: Reader,
  { seed, measure, isOver, shrinkMs }: { seed: number; measure: Measure; isOver: () => boolean; shrinkMs: number },
): Promise<Looked> {
  const chance = openSeededRandom(seed)
  const best: { dear: Scored[]; growing: Scored[] } = { dear: [], growing: [] }
  let tried = 0
  while (!isOver()) {
    const recipe = next(reader, best, chance)
    const { sizes, times } = sizesFor(reader, chance.below(0.1))
    const { costs, endless } = await measure.run({
      reader: reader.name,
      recipe,
      sizes,
      times,
      runs: 1,
      dearMs: dearMsOf(sizes, times),
      stopMs: 2 * limits.msPer100Kb,
    })
    tried++
    const last = costs.at(-1)
    if (endless || dear(reader, costs, times) || growthOf(costs) > limits.growth) {
      const why = await judge(reader, recipe, measure)
      if (why !== undefined) return { find: { reader: reader.name, ...(await shrunk(reader, recipe, why, measure, shrinkMs)) }, tried }
    }
    if (!last) continue
    keep(best.dear, { recipe, score: per100Kb(last, times) })
    keep(best.growing, { recipe, score: growthOf(costs) })
  }
  return { find: undefined, tried }
}

interface Scored {
  recipe: Recipe
  score: number
}

function keep(list: Scored[], one: Scored): void {
  list.push(one)
  list.sort((a, b) => b.score - a.score)
  list.length = Math.min(list.length, kept)
}

function next(reader: Reader, { dear, growing }: { dear: Scored[]; growing: Scored[] }, chance: SeededRandom): Recipe {
  const from = chance.below(0.5) ? dear : growing
  if (from.length < 2 || chance.below(0.5)) return draw(reader, chance)
  return mutate(chance.of(from).recipe, reader, chance)
}

/** Returns the smallest recipe found by reduction that still breaks a limit. */
async function shrunk(
  reader: Reader,
  recipe: Recipe,
  why: string,
  measure: Measure,
  withinMs: number,
): Promise<{ recipe: Recipe; why: string }> {
  const isLarge = (await judgeAt(reader, recipe, measure, false, 2)) === undefined
  let best = recipe
  const endMs = performance.now() + withinMs
  for (let goesOn = true; goesOn; ) {
    goesOn = false
    for (const candidate of smaller(best)) {
      if (performance.now() > endMs) break
      if (!candidate.some(({ many }) => many) || (await judgeAt(reader, candidate, measure, isLarge, 1)) === undefined) continue
      best = candidate
      goesOn = true
      break
    }
  }
  const still = await judge(reader, best, measure)
  return still === undefined ? { recipe, why } : { recipe: best, why: still }
}

export const told = ({ reader, recipe, why }: Find): string =>
  `${reader}: ${why}\n  ${shown(recipe)}\n  to keep: ${JSON.stringify({ reader, recipe })}`
