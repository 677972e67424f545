/** Straight lines through measurements, by least squares. Pure. */

export interface Line {
  /** Change of y for one of x. */
  slope: number
  intercept: number
  /** Standard error of the slope; 0 with fewer than three points. */
  slopeError: number
}

/** The line with the least sum of squared distances in y. Throws with fewer than two different x. */
export function lineThrough(points: readonly { x: number; y: number }[]): Line {
  const count = points.length
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / count
  const meanY = points.reduce((sum, { y }) => sum + y, 0) / count
  const spreadX = points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0)
  if (count < 2 || spreadX === 0) throw new Error(`a line needs two points with different x; there are ${count} points`)
  const slope = points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0) / spreadX
  const intercept = meanY - slope * meanX
  const residue = points.reduce((sum, { x, y }) => sum + (y - intercept - slope * x) ** 2, 0)
  return { slope, intercept, slopeError: count > 2 ? Math.sqrt(residue / (count - 2) / spreadX) : 0 }
}

export interface Drift {
  /** Mean of the values. */
  level: number
  /** Change along the line from the first value to the last, in percent of the level; 0 where the level is 0. */
  percent: number
  /** Two standard errors of it. */
  uncertainty: number
}

/** The drift of values measured at equal intervals. Throws with fewer than two. */
export function driftOf(values: readonly number[]): Drift {
  const { slope, slopeError } = lineThrough(values.map((y, x) => ({ x, y })))
  const level = values.reduce((sum, one) => sum + one, 0) / values.length
  if (level === 0) return { level, percent: 0, uncertainty: 0 }
  const toPercent = (perStep: number) => ((perStep * (values.length - 1)) / level) * 100
  return { level, percent: toPercent(slope), uncertainty: toPercent(2 * slopeError) }
}

/** The b of `y = a * x^b`: 0 if y does not depend on x, 1 if it is proportional. Both positive. */
export const exponentOf = (points: readonly { x: number; y: number }[]): number =>
  lineThrough(points.map(({ x, y }) => ({ x: Math.log(x), y: Math.log(y) }))).slope
