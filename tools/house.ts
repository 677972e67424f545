/**
 * Project rules without a ready-made tool, in one run: import direction, module interfaces, the machine's time, randomness and environment,
 * and table owners. `node tools/house.ts` prints violations and fails.
 */
import { checkDirection } from './direction.ts'
import { checkFaces } from './faces.ts'
import { filesBelow, type House, type Problem, readSource } from './source.ts'
import { checkTables } from './tables.ts'
import { checkWorld } from './world.ts'

export interface HouseReport {
  problems: Problem[]
  /** One line: the number of files examined. */
  summary: string
}

export async function checkHouse(root: string, house: House): Promise<HouseReport> {
  const files = readSource(root)
  const direction = await checkDirection(root, house, files)
  const tables = checkTables(root, house, files)
  const problems = [...direction.problems, ...checkFaces(house, files, direction), ...checkWorld(files), ...tables.problems]
  const onDisk = filesBelow(root, 'src', '.ts').length
  if (onDisk === 0 || direction.modules < onDisk) {
    problems.push({
      rule: 'cruise-sees-everything',
      at: 'src/',
      says: `dependency-cruiser saw ${direction.modules} modules of ${onDisk} files`,
    })
  }
  return { problems, summary: `${direction.modules} modules, ${tables.statements} statements, ${tables.tables} tables` }
}

export const printProblems = (problems: Problem[]) => problems.map(({ at, rule, says }) => `${at}  ${says}  [${rule}]`).join('\n')

if (import.meta.main) {
  const { problems, summary } = await checkHouse(process.cwd(), await import('../house.config.mjs'))
  console.log(summary)
  if (problems.length > 0) {
    console.error(printProblems(problems))
    process.exitCode = 1
  }
}
