/**
 * Import circles: no file imports itself by way of others, in any folder of code. Type-only imports count: a reader follows them too.
 * Unlike dependency-cruiser, this check reads the tests and benchmarks.
 */
import { posix } from 'node:path'
import { importsOf, type Problem, type SourceFile } from './source-files.ts'

/** The path that an import of a file names; undefined for a package. */
function targetOf(path: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return posix.join(posix.dirname(path), specifier)
  return specifier.startsWith('#') ? `src/${specifier.slice(1)}/${specifier.slice(1)}.ts` : undefined
}

/** One problem for each import that closes a circle, with the files of the circle. */
export function checkCircles(files: readonly SourceFile[]): Problem[] {
  const imports = new Map(files.map((file) => [file.path, importsOf(file).map(({ specifier }) => targetOf(file.path, specifier))]))
  const problems: Problem[] = []
  const finished = new Set<string>()
  const entered: string[] = []
  const visit = (path: string) => {
    if (finished.has(path)) return
    if (entered.includes(path)) {
      const circle = [...entered.slice(entered.indexOf(path)), path]
      problems.push({ rule: 'no-circular', at: entered.at(-1) ?? path, says: `a circle of imports: ${circle.join(' → ')}` })
      return
    }
    entered.push(path)
    for (const target of imports.get(path) ?? []) if (target !== undefined && imports.has(target)) visit(target)
    entered.pop()
    finished.add(path)
  }
  for (const path of imports.keys()) visit(path)
  return problems
}
