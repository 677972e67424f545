/** Measurements of each row run alone. `npm run misbehaviours -- --write` stores them, and docs/remote-misbehaviour.md shows them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { rows } from './table.ts'

export interface Measured {
  /** Time from acceptance to the last expected outcome. */
  seconds: number
  /** Resident memory of the delivery process in MiB: its peak minus the value before the row. */
  grownMib: number
}

/** By the row's name. */
export type Measurements = Record<string, Measured>

const file = new URL('measurements.json', import.meta.url)

export const read = (): Measurements => JSON.parse(readFileSync(file, 'utf8')) as Measurements

/** Writes in the order of the table and drops entries without a row. */
export function write(measured: Measurements): void {
  const lines = rows.flatMap(({ name }) => {
    const found = measured[name]
    return found ? [`  ${JSON.stringify(name)}: { "seconds": ${found.seconds}, "grownMib": ${found.grownMib} }`] : []
  })
  writeFileSync(file, `{\n${lines.join(',\n')}\n}\n`)
}
