/**
 * Import direction: which file may import which, as dependency-cruiser rules generated from the list in modules.config.mjs. The cruise must
 * have seen every file and import found here: a checker that finds no files fails.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cruise, type ICruiseOptions, type IRegularForbiddenRuleType } from 'dependency-cruiser'
import { importsOf, isCompositionRoot, type ModuleList, type Problem, type SourceFile } from './source-files.ts'

export interface Direction {
  problems: Problem[]
  modules: number
  /** Module → the modules that its own files (without tests) import. */
  uses: Map<string, Set<string>>
  /** Modules that the composition root imports. */
  usedByMain: Set<string>
}

const escape = (name: string) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
const anyOf = (names: readonly string[]) => `(${names.map(escape).join('|')})`
const packages = (names: string) => `(^|node_modules/)(${names})(/|$)`
/** Loaded only if the operator has installed its packages. */
const optional = ['^src/base/traces-export\\.ts$']
const compositionRoot = '^src/main(\\.ts$|/)'
const testFile = '\\.test\\.ts$'

function rulesFor(moduleList: ModuleList): IRegularForbiddenRuleType[] {
  const rule = (name: string, from: IRegularForbiddenRuleType['from'], to: IRegularForbiddenRuleType['to']): IRegularForbiddenRuleType => ({
    name,
    severity: 'error',
    from,
    to,
  })
  const upward = moduleList.modules.slice(0, -1).map((module, index) => {
    return rule(`${module}-looks-up`, { path: `^src/${escape(module)}/` }, { path: `^src/${anyOf(moduleList.modules.slice(index + 1))}/` })
  })
  const entryPoints = moduleList.entryPoints.map((entryPoint) => {
    return rule(
      'only-main-opens-entry-points',
      { path: '^src/', pathNot: [compositionRoot, `^src/${escape(entryPoint)}/`] },
      { path: `^src/${escape(entryPoint)}/` },
    )
  })
  return [
    ...upward,
    ...entryPoints,
    rule('interface-only', { path: '^src/([^/]+)/' }, { path: '^src/[^/]+/', pathNot: ['^src/$1/', '^src/([^/]+)/\\1\\.ts$'] }),
    rule(
      'interface-only',
      { path: '^(src/main\\.ts$|test/|bench/|tools/)' },
      { path: '^src/[^/]+/', pathNot: ['^src/([^/]+)/\\1\\.ts$', compositionRoot] },
    ),
    rule('folder-knows-itself', { path: '^src/([^/]+)/([^/]+)/' }, { path: '^src/$1/', pathNot: '^src/$1/$2/' }),
    rule('unresolvable', { path: '^(src|test|bench|tools)/' }, { couldNotResolve: true }),
    rule(
      'libraries-know-no-store',
      { path: `^src/${anyOf(moduleList.libraries)}/`, pathNot: testFile },
      { path: packages('pg|pg-[^/]+|fastify|@fastify') },
    ),
    rule('main-is-nobodys', { path: '^(src|test|bench|tools)/', pathNot: compositionRoot }, { path: compositionRoot }),
    rule('src-stands-alone', { path: '^src/', pathNot: testFile }, { path: '^(test|bench|tools|dashboard)/' }),
    rule('src-runs-without-dev-dependencies', { path: '^src/', pathNot: [testFile, ...optional] }, { dependencyTypes: ['npm-dev'] }),
    rule('dashboard-knows-no-src', { path: '^dashboard/' }, { path: '^src/', pathNot: '^src/http/dashboard-responses\\.ts$' }),
    rule('dashboard-shares-types-only', { path: '^dashboard/' }, { path: '^(src|packages)/', dependencyTypesNot: ['type-only'] }),
  ]
}

export async function checkDirection(root: string, moduleList: ModuleList, files: SourceFile[]): Promise<Direction> {
  // Tests and benchmarks may import any module, and dependency-cruiser cannot parse their `await using`.
  const folders = ['src', 'dashboard'].filter((folder) => existsSync(join(root, folder)))
  const options: ICruiseOptions = {
    baseDir: root,
    ruleSet: { forbidden: rulesFor(moduleList) },
    validate: true,
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^dashboard/(dist|node_modules)/' },
  }
  const resolution = {
    extensions: ['.ts', '.mjs', '.js', '.tsx', '.json'],
    exportsFields: ['exports'],
    conditionNames: ['import', 'node', 'types'],
  }
  const { output: result } = await cruise(folders, options, resolution)
  if (typeof result === 'string') throw new Error('dependency-cruiser answered in an unknown form')

  const problems: Problem[] = result.summary.violations.map((violation) => ({
    rule: violation.rule.name,
    at: violation.from,
    says: violation.rule.name === 'unresolvable' ? `imports ${violation.to}, which does not exist` : `may not import ${violation.to}`,
  }))
  const modules = new Map(result.modules.map((module) => [module.source, module]))
  const uses = new Map<string, Set<string>>()
  const usedByMain = new Set<string>()
  for (const file of files.filter(({ path }) => folders.some((folder) => path.startsWith(`${folder}/`)))) {
    const module = modules.get(file.path)
    if (!module) {
      problems.push({ rule: 'cruise-sees-everything', at: file.path, says: 'was not seen by dependency-cruiser' })
      continue
    }
    const seen = new Set(module.dependencies.map((dependency) => bare(dependency.module)))
    for (const { specifier } of importsOf(file)) {
      if (!seen.has(bare(specifier)))
        problems.push({
          rule: 'cruise-sees-everything',
          at: file.path,
          says: `its import of ${specifier} was not seen by dependency-cruiser: import it at the top of the file`,
        })
    }
    const target = isCompositionRoot(file.path)
      ? usedByMain
      : file.isTest || file.module === undefined
        ? undefined
        : setIn(uses, file.module)
    for (const dependency of module.dependencies) {
      const module = (/^#([^/]+)$/.exec(dependency.module) ?? /^src\/([^/]+)\//.exec(dependency.resolved))?.[1]
      if (module !== undefined && module !== file.module) target?.add(module)
    }
  }
  return { problems, modules: result.modules.filter((module) => /^src\/.*\.ts$/.test(module.source)).length, uses, usedByMain }
}

/** A builtin's name without its prefix, as the cruise may report it. */
const bare = (specifier: string) => specifier.replace(/^node:/, '')

function setIn(map: Map<string, Set<string>>, key: string): Set<string> {
  let set = map.get(key)
  if (!set) {
    set = new Set()
    map.set(key, set)
  }
  return set
}
