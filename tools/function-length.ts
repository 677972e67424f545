/**
 * Length of functions: one over 60 lines says why in the comment above it, with the words "Long because", and one over 100 lines is refused.
 * A function counts the lines of those inside it. The callbacks of a test's `describe` and `test` are not limited.
 */
import { isGenerated, isNode, nameOf, nodesOf, type Problem, placeOf, type SourceFile, type SyntaxNode } from './source-files.ts'

const reasonBeyond = 60
const maxLines = 100
const reason = /\blong because\b/i

const functionTypes = new Set([
  'FunctionDeclaration',
  'FunctionExpression',
  'ArrowFunctionExpression',
  'MethodProperty',
  'ClassMethod',
  'PrivateMethod',
  'Constructor',
])
const testCalls = new Set(['describe', 'it', 'test', 'beforeAll', 'beforeEach', 'afterAll', 'afterEach'])

/** The function that a call names first: `test` in `test(…)`, `test.each(…)(…)` and `test.skipIf(…)(…)`. */
function calledName(callee: unknown): string | undefined {
  if (!isNode(callee)) return undefined
  if (callee.type === 'MemberExpression') return calledName(callee.object)
  return callee.type === 'CallExpression' || callee.type === 'TaggedTemplateExpression'
    ? calledName(callee.callee ?? callee.tag)
    : nameOf(callee)
}

/** The functions that a test file passes to `describe`, `test` and the like. */
function testCallbacks({ tree, isTest }: SourceFile): Set<unknown> {
  const calls = isTest ? [...nodesOf(tree)].filter(({ type, callee }) => type === 'CallExpression' && isTestCall(callee)) : []
  return new Set(calls.flatMap((call) => (Array.isArray(call.arguments) ? call.arguments.map(({ expression }) => expression) : [])))
}

const isTestCall = (callee: unknown) => testCalls.has(calledName(callee) ?? '')

/** The comment that ends on the line above `line`, which counts from 1. */
function commentAbove(lines: readonly string[], line: number): string {
  let first = line - 1
  while (first > 0 && /^\s*(\/\/|\/?\*)/.test(lines[first - 1] ?? '')) first--
  return lines.slice(first, line - 1).join(' ')
}

export function checkFunctionLength(files: readonly SourceFile[]): Problem[] {
  return files.flatMap((file) => {
    if (isGenerated(file.path)) return []
    const octets = Buffer.from(file.text)
    const lines = file.text.split('\n')
    const exempt = testCallbacks(file)
    const problems: Problem[] = []
    for (const node of nodesOf(file.tree)) {
      if (!functionTypes.has(node.type) || exempt.has(node)) continue
      const length = linesOf(octets, node)
      if (length <= reasonBeyond) continue
      const at = placeOf(file, node)
      const hasReason = reason.test(commentAbove(lines, Number(at.slice(file.path.length + 1))))
      const says =
        length > maxLines
          ? `a function of ${length} lines: split it, for ${maxLines} is the limit`
          : `a function of ${length} lines: split it, or give the reason in the comment above it ("Long because …")`
      if (length > maxLines || !hasReason) problems.push({ rule: 'function-length', at, says })
    }
    return problems
  })
}

/** The lines from a node's first to its last. Spans count octets of UTF-8 from 1. */
function linesOf(octets: Buffer, { span }: SyntaxNode): number {
  let lines = 1
  for (const octet of octets.subarray(span.start - 1, span.end - 1)) if (octet === 0x0a) lines++
  return lines
}
