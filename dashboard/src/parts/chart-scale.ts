/** The scale of a chart: the value at its top, which is round, as is its half. */

const steps = [1, 1.5, 2, 3, 4, 5, 6, 8, 10, 20]

/** The next round number. `isWhole`: for counts, half of it is a whole number too. */
export function topOf(value: number, isWhole: boolean): number {
  if (value <= 0) return isWhole ? 2 : 1
  const size = 10 ** Math.floor(Math.log10(value))
  const fits = (top: number) => top >= value && (!isWhole || top % 2 === 0)
  return (steps.find((step) => fits(step * size)) ?? 20) * size
}
