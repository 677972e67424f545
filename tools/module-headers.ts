/**
 * Public interfaces: reads the paragraph that opens each module (`Owns: … Uses: … Used by: …`), compares it with the real imports, and
 * collects all of them in docs/generated/modules.md.
 */
import type { Direction } from './dependencies.ts'
import { headOf, importsOf, isCompositionRoot, type ModuleList, type Problem, type SourceFile } from './source-files.ts'

export interface ModuleHeader {
  module: string
  path: string
  /** The module's purpose, from its own paragraph. */
  purpose: string
  owns: string[]
  uses: string[]
  /** `every module` is kept unchanged. */
  usedBy: string[]
  promises: string
}

const form = /^(.*?) ?Owns: (.*?)\. Uses: (.*?)\. Used by: (.*?)\. Promises: (.*)$/

const names = (list: string) =>
  list
    .replace(/\([^)]*\)/g, '')
    .split(/,| and /)
    .map((name) => name.trim())
    .filter((name) => name !== '' && !/^(nothing|no tables|no modules)$/.test(name))

export function readModuleHeaders(moduleList: ModuleList, files: SourceFile[]): { headers: ModuleHeader[]; problems: Problem[] } {
  const problems: Problem[] = []
  const headers: ModuleHeader[] = []
  for (const module of moduleList.modules) {
    if (!files.some((file) => file.module === module && !file.isTest)) continue
    const path = `src/${module}/${module}.ts`
    const file = files.find((candidate) => candidate.path === path)
    if (!file) {
      problems.push({ rule: 'module-header', at: `src/${module}/`, says: `has no public interface ${path}` })
      continue
    }
    const [, purpose, owns, uses, usedBy, promises] = form.exec(headOf(file.text) ?? '') ?? []
    if (purpose === undefined || owns === undefined || uses === undefined || usedBy === undefined || promises === undefined) {
      problems.push({
        rule: 'module-header',
        at: path,
        says: 'does not open with a paragraph "what it is. Owns: … . Uses: … . Used by: … . Promises: …"',
      })
      continue
    }
    headers.push({ module, path, purpose, owns: names(owns), uses: names(uses), usedBy: names(usedBy), promises })
  }
  return { headers, problems }
}

export function checkModuleHeaders(
  moduleList: ModuleList,
  files: SourceFile[],
  direction: Pick<Direction, 'uses' | 'usedByMain'>,
): Problem[] {
  const { headers, problems } = readModuleHeaders(moduleList, files)
  const exists = (module: string) => files.some((file) => file.module === module)
  for (const header of headers) {
    const says = (text: string) => problems.push({ rule: 'module-header', at: header.path, says: text })
    const used = direction.uses.get(header.module) ?? new Set<string>()
    for (const module of used) if (!header.uses.includes(module)) says(`uses ${module}, but does not say so in "Uses:"`)
    for (const module of header.uses) if (!used.has(module)) says(`says "Uses: ${module}", but imports nothing from it`)

    if (header.usedBy.includes('every module')) continue
    for (const [user, modules] of direction.uses) {
      if (modules.has(header.module) && !header.usedBy.includes(user)) says(`is used by ${user}, but does not say so in "Used by:"`)
    }
    for (const user of header.usedBy) {
      if (user === 'main') {
        if (files.some((file) => file.path === 'src/main.ts') && !direction.usedByMain.has(header.module))
          says('says "Used by: main", but src/main.ts and src/main/ import nothing from it')
      } else if (!moduleList.modules.includes(user)) says(`says "Used by: ${user}", which is no module`)
      else if (exists(user) && !direction.uses.get(user)?.has(header.module)) says(`says "Used by: ${user}", which imports nothing from it`)
    }
  }
  for (const file of files) {
    if (file.module !== undefined && !moduleList.modules.includes(file.module)) {
      problems.push({ rule: 'module-not-in-list', at: file.path, says: `${file.module} is not in the list of modules.config.mjs` })
    } else if (file.module === undefined && !isCompositionRoot(file.path) && file.path !== 'src/main.test.ts') {
      problems.push({ rule: 'module-not-in-list', at: file.path, says: 'lies in no module; the only bare file of src/ is main.ts' })
    }
    if (!file.isTest && headOf(file.text) === undefined)
      problems.push({ rule: 'head', at: file.path, says: 'has no head comment saying what it is for' })
    for (const { specifier } of importsOf(file)) {
      if (specifier === `#${file.module}`)
        problems.push({
          rule: 'own-interface',
          at: file.path,
          says: `imports its own module by ${specifier}; inside a module import './file.ts'`,
        })
    }
  }
  return problems
}

/** docs/generated/modules.md. */
export function modulesDocument(moduleList: ModuleList, headers: ModuleHeader[]): string {
  const list = (items: string[]) => (items.length === 0 ? 'nothing' : items.join(', '))
  const kind = (module: string) =>
    moduleList.libraries.includes(module) ? ' (protocol library)' : moduleList.entryPoints.includes(module) ? ' (entry point)' : ''
  const modules = headers.map((header) =>
    [
      `## ${header.module}${kind(header.module)}`,
      '',
      header.purpose,
      '',
      `- Owns: ${list(header.owns)}`,
      `- Uses: ${list(header.uses)}`,
      `- Used by: ${list(header.usedBy)}`,
      `- Promises: ${header.promises}`,
      '',
    ].join('\n'),
  )
  return [
    '# Modules',
    '',
    'Generated from the public interfaces of the modules by `npm run golden`. Ground floor first: a module may use the modules above it on this page,',
    'never those below. `npm run check` compares each paragraph with the real imports.',
    '',
    ...modules,
  ].join('\n')
}
