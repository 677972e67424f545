/**
 * Parses the program's files into syntax trees for the code checks, so that comments and strings are never mistaken for code. A file that
 * cannot be parsed stops the check.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { parseSync } from '@swc/core'

/** The list of modules (modules.config.mjs), or a test's own. */
export interface ModuleList {
  modules: readonly string[]
  libraries: readonly string[]
  entryPoints: readonly string[]
  commonCommits: readonly string[]
}

export interface Problem {
  /** Name of the violated rule. */
  rule: string
  /** `path` or `path:line`. */
  at: string
  says: string
}

/** The composition root: `postrider serve` and the roles that it starts. */
export const isCompositionRoot = (path: string): boolean => /^src\/main(\.ts$|\/)/.test(path)

/** A node of swc's tree; its other members depend on its type. */
export interface SyntaxNode {
  type: string
  span: { start: number; end: number }
  [key: string]: unknown
}

export interface SourceFile {
  /** From the root, with forward slashes. */
  path: string
  text: string
  tree: SyntaxNode
  isTest: boolean
  /** Its folder in src/; undefined for the composition root (src/main.ts, src/main/) and files outside src/. */
  module: string | undefined
}

/** All files below `folder` whose name ends in `ending`, sorted; empty if the folder does not exist. */
export function filesBelow(root: string, folder: string, ending: string): string[] {
  const start = join(root, folder)
  if (!existsSync(start)) return []
  return readdirSync(start, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending) && !entry.parentPath.includes(`node_modules${sep}`))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort()
}

/** Whether a program wrote the file, or another project: the rules for people do not apply. */
export const isGenerated = (path: string): boolean => /(^|\/)(generated|dist|corpus)[./-]/.test(path)

/** Folders with code; each may be absent. */
export const codeFolders = ['src', 'dashboard', 'packages', 'tools', 'bench', 'test']

/** The parsed files of a folder, without those that a build writes. */
export function readSource(root: string, folder = 'src'): SourceFile[] {
  const paths = [...filesBelow(root, folder, '.ts'), ...filesBelow(root, folder, '.tsx')].filter((path) => !path.includes('/dist/'))
  return paths.map((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    const module = isCompositionRoot(path) ? undefined : /^src\/([^/]+)\//.exec(path)?.[1]
    return { path, text, tree: parse(path, text), isTest: path.endsWith('.test.ts'), module }
  })
}

function parse(path: string, text: string): SyntaxNode {
  try {
    return parseSync(text, { syntax: 'typescript', tsx: path.endsWith('.tsx'), target: 'esnext' }) as unknown as SyntaxNode
  } catch (error) {
    throw new Error(`${path} cannot be parsed`, { cause: error })
  }
}

/** Every node of the tree, outer ones first. */
export function* nodesOf(tree: unknown): Generator<SyntaxNode> {
  if (Array.isArray(tree)) {
    for (const item of tree) yield* nodesOf(item)
  } else if (typeof tree === 'object' && tree !== null) {
    if (isNode(tree)) yield tree
    for (const value of Object.values(tree)) yield* nodesOf(value)
  }
}

export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string' && 'span' in value
}

/** An identifier's name, such as `Date` or `sql`; undefined for any other node. */
export function nameOf(node: unknown): string | undefined {
  return isNode(node) && node.type === 'Identifier' && typeof node.value === 'string' ? node.value : undefined
}

/** The member's name in `a.name` and `a['name']`. */
export function memberOf(node: SyntaxNode): string | undefined {
  const property = node.property
  if (!isNode(property)) return undefined
  if (property.type === 'Computed') {
    const key = property.expression
    return isNode(key) && key.type === 'StringLiteral' ? String(key.value) : undefined
  }
  return nameOf(property)
}

/** A node's position, as `path:line`. Spans count octets of UTF-8 from 1. */
export function placeOf(file: SourceFile, node: SyntaxNode): string {
  const before = Buffer.from(file.text).subarray(0, node.span.start - 1)
  let line = 1
  for (const octet of before) if (octet === 0x0a) line++
  return `${file.path}:${line}`
}

/** All imports, re-exports and dynamic imports with a literal name, including type-only ones. */
export function importsOf(file: SourceFile): { specifier: string; node: SyntaxNode }[] {
  const found = []
  for (const node of nodesOf(file.tree)) {
    const source =
      node.type === 'CallExpression' && isNode(node.callee) && node.callee.type === 'Import' ? firstArgument(node) : node.source
    const named = node.type === 'TsImportType' ? node.argument : source
    if (isNode(named) && named.type === 'StringLiteral') found.push({ specifier: String(named.value), node })
  }
  return found
}

function firstArgument(call: SyntaxNode): unknown {
  const list = call.arguments
  const first: unknown = Array.isArray(list) ? list[0] : undefined
  return typeof first === 'object' && first !== null && 'expression' in first ? first.expression : undefined
}

/** The opening comment of a file, without its stars, as one line of text. */
export function headOf(text: string): string | undefined {
  const head = /^(?:#!.*\n)?\/\*\*?([\s\S]*?)\*\/|^(?:#!.*\n)?((?:\/\/.*\n)+)/.exec(text)
  return head?.[1] === undefined && head?.[2] === undefined
    ? undefined
    : (head[1] ?? head[2] ?? '')
        .replace(/^\s*(\*|\/\/)? ?/gm, ' ')
        .replace(/\s+/g, ' ')
        .trim()
}
