/**
 * Unique exports: a name that src exports has one declaration, so that a search for it finds one thing. Two files may export the same
 * name only when one of them re-exports the declaration of the other. Reads syntax, not types.
 */
import { isNode, nameOf, nodesOf, type Problem, placeOf, type SourceFile, type SyntaxNode } from './source-files.ts'

const listOf = (value: unknown): SyntaxNode[] => (Array.isArray(value) ? value.filter(isNode) : [])
const isTyped = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && 'type' in value

/** The names that a pattern binds, as in `a`, `{ a, b: c, ...d }` and `[a, b = 1]`. */
function boundBy(pattern: unknown): string[] {
  // A property with a key and a value has no span, so it is not a SyntaxNode.
  if (!isTyped(pattern)) return []
  switch (pattern.type) {
    case 'ObjectPattern':
      return Array.isArray(pattern.properties) ? pattern.properties.flatMap(boundBy) : []
    case 'KeyValuePatternProperty':
      return boundBy(pattern.value)
    case 'AssignmentPatternProperty':
      return boundBy(pattern.key)
    case 'ArrayPattern':
      return listOf(pattern.elements).flatMap(boundBy)
    case 'AssignmentPattern':
      return boundBy(pattern.left)
    case 'RestElement':
      return boundBy(pattern.argument)
    default:
      return [nameOf(pattern)].filter((name) => name !== undefined)
  }
}

/** A function, class, type, enum or namespace has one name; a variable statement may have several. */
const declaredBy = (declaration: unknown): string[] =>
  isNode(declaration) && declaration.type === 'VariableDeclaration'
    ? listOf(declaration.declarations).flatMap(({ id }) => boundBy(id))
    : isNode(declaration)
      ? [nameOf(declaration.identifier) ?? nameOf(declaration.id)].filter((name) => name !== undefined)
      : []

/** Exported names with a declaration in this file, each with its node. An import that is exported again is declared elsewhere. */
function exportsOf({ tree }: SourceFile): Map<string, SyntaxNode> {
  const nodes = [...nodesOf(tree)]
  const imported = new Set(
    nodes
      .filter(({ type }) => type === 'ImportDeclaration')
      .flatMap(({ specifiers }) => listOf(specifiers).map(({ local }) => nameOf(local))),
  )
  const found = new Map<string, SyntaxNode>()
  for (const node of nodes) {
    if (node.type === 'ExportDeclaration') for (const name of declaredBy(node.declaration)) found.set(name, node)
    if (node.type !== 'ExportNamedDeclaration' || isNode(node.source)) continue
    for (const { orig, exported } of listOf(node.specifiers)) {
      const local = nameOf(orig)
      const name = nameOf(exported) ?? local
      if (local !== undefined && name !== undefined && !imported.has(local)) found.set(name, node)
    }
  }
  return found
}

export function checkUniqueExports(files: readonly SourceFile[]): Problem[] {
  const problems: Problem[] = []
  const first = new Map<string, string>()
  for (const file of files) {
    if (file.isTest) continue
    for (const [name, node] of exportsOf(file)) {
      const at = placeOf(file, node)
      const other = first.get(name)
      if (other === undefined) first.set(name, at)
      else problems.push({ rule: 'unique-exports', at, says: `exports ${name}, and so does ${other}: give one of them another name` })
    }
  }
  return problems
}
