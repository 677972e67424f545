/**
 * Project rules without a ready-made tool, in one run: import direction and circles, module interfaces, the machine's time, randomness and
 * environment, names, table owners, the length of functions, and migrations that only add. `node tools/modules.ts` prints violations and fails.
 */
import { checkDirection } from './dependencies.ts'
import { checkFunctionLength } from './function-length.ts'
import { checkIdentifiers } from './identifiers.ts'
import { checkCircles } from './import-circles.ts'
import { checkMigrations, readMigrationFiles } from './migrations.ts'
import { checkModuleHeaders } from './module-headers.ts'
import { checkWorld } from './purity.ts'
import { codeFolders, filesBelow, isGenerated, type ModuleList, type Problem, readSource } from './source-files.ts'
import { checkTables } from './table-ownership.ts'
import { checkUniqueExports } from './unique-exports.ts'

export interface ModuleReport {
  problems: Problem[]
  /** One line: the number of files examined. */
  summary: string
}

export async function checkModules(root: string, moduleList: ModuleList): Promise<ModuleReport> {
  const files = readSource(root)
  const otherCode = codeFolders.filter((folder) => folder !== 'src').flatMap((folder) => readSource(root, folder))
  const direction = await checkDirection(root, moduleList, files)
  const tables = checkTables(root, moduleList, files)
  const problems = [
    ...direction.problems,
    ...checkCircles([...files, ...otherCode]),
    ...checkModuleHeaders(moduleList, files, direction),
    ...checkWorld(files),
    ...checkUniqueExports(files),
    ...checkIdentifiers([...files, ...otherCode.filter(({ path }) => !path.startsWith('test/') && !isGenerated(path))]),
    ...checkMigrations(readMigrationFiles(root)),
    ...checkFunctionLength([...files, ...otherCode.filter(({ path }) => !path.startsWith('test/'))]),
    ...tables.problems,
  ]
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
  const { problems, summary } = await checkModules(process.cwd(), await import('../modules.config.mjs'))
  console.log(summary)
  if (problems.length > 0) {
    console.error(printProblems(problems))
    process.exitCode = 1
  }
}
