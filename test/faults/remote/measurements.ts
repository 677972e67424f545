/** What was measured of each row run alone; `npm run misbehaviours -- --write` keeps it, docs/remote-misbehaviour.md shows it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { rows } from './table.ts'

export interface Measured {
  /** From acceptance to the last outcome that is expected. */
  seconds: number
  /** Resident memory of the delivery process: at its peak, less what it was before; in MiB. */
  grownMib: number
}

/** By the row's name. */
export type Measurements = Record<string, Measured>

const file = new URL('measurements.json', import.meta.url)

export const read = (): Measurements => JSON.parse(readFileSync(file, 'utf8')) as Measurements

/** In the order of the table; what is of no row any more goes. */
export function write(measured: Measurements): void {
  const lines = rows.flatMap(({ name }) => {
    const found = measured[name]
    return found ? [`  ${JSON.stringify(name)}: { "seconds": ${found.seconds}, "grownMib": ${found.grownMib} }`] : []
  })
  writeFileSync(file, `{\n${lines.join(',\n')}\n}\n`)
}
