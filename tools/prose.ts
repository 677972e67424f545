/**
 * Checks the style of CONTRIBUTING.md, "Prose", as far as a program can judge it: in comments of all code, pages of docs, and texts for
 * people. `npm run check` runs it. `node tools/prose.ts` prints each finding and fails on any.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from '@swc/core'
import { filesBelow, isGenerated, isNode, nodesOf, type Problem } from './source-files.ts'

interface Rule {
  rule: string
  /** Matched against text without code and quotations. */
  pattern: RegExp
  says: string
}

const maxWords = 40

const rules: readonly Rule[] = [
  { rule: 'what-clause', pattern: /\bwhat\b(?!\?)/gi, says: 'name the thing instead of a clause with "what"' },
  {
    rule: 'vague-actor',
    pattern: /\b(nobody|somebody|whoever|whatever|whichever|of ours)\b/gi,
    says: 'name the actor',
  },
  { rule: 'tell', pattern: /\b(tells?|told|telling)\b/gi, says: 'systems return, report, record, log or send' },
  {
    rule: 'idiom',
    pattern: /\b(for good|by itself|for now|anew|likewise|nothing but|none that)\b/gi,
    says: 'say it plainly: permanently, automatically, at present, again, also, only',
  },
]

const headRule = /^(What|Who|Whose|Where|Whether|How|When|Which|Why|That)\b/

export interface Passage {
  /** `path:line`. */
  at: string
  text: string
  isHead: boolean
}

/** The problems of one passage: plain text that still has the backticks around code and the quotation marks. */
export function judge({ at, text, isHead }: Passage): Problem[] {
  const plain = withoutCode(text)
  const problems: Problem[] = []
  if (isHead && headRule.test(plain)) problems.push({ rule: 'head', at, says: 'begins with a question word; begin with a noun or a verb' })
  for (const { rule, pattern, says } of rules) {
    for (const [found] of plain.matchAll(pattern)) problems.push({ rule, at, says: `"${found}": ${says}` })
  }
  for (const sentence of plain.split(/(?<=[.:;!?])\s|\n\s*\n|\|/)) {
    const words = sentence.split(/\s+/).filter((word) => /\w/.test(word)).length
    if (words > maxWords)
      problems.push({ rule: 'long-sentence', at, says: `a sentence of ${words} words: "${sentence.trim().slice(0, 60)}…"` })
  }
  return problems
}

const withoutCode = (text: string) =>
  text
    .replace(/`[^`]*`/g, '`code`')
    .replace(/"[^"\n]*"|“[^”\n]*”|\*[^*\n]+\*/g, '"quoted"')
    .replace(/\S+[./]\S*\/\S*[^\s.,:;)]/g, 'url')

/** The comments of a TypeScript file; adjacent `//` lines count as one comment. */
export function commentsOf(path: string, text: string): Passage[] {
  const tree = parseSync(text, { syntax: 'typescript', tsx: path.endsWith('x'), target: 'esnext' })
  const octets = Buffer.from(text)
  for (const node of nodesOf(tree)) {
    if (!/^(StringLiteral|TemplateElement|RegExpLiteral|JSXText)$/.test(node.type)) continue
    for (let at = node.span.start - 1; at < node.span.end - 1; at++) if (octets[at] !== 0x0a) octets[at] = 0x20
  }
  const passages: Passage[] = []
  // A string is replaced by spaces of the same length in octets, so that line numbers stay right.
  const masked = octets.toString('utf8')
  const comment = /\/\*[\s\S]*?\*\/|(?:^[ \t]*|[ \t])\/\/.*(?:\n[ \t]*\/\/.*)*/gm
  for (const match of masked.matchAll(comment)) {
    const line = masked.slice(0, match.index).split('\n').length
    const words = match[0]
      .replace(/^\s*\/\*\*?|\*\/$/g, '')
      .replace(/^[ \t]*(\*|\/\/)[ \t]?/gm, '')
      .trim()
    if (/^(biome-ignore|oxlint-|@ts-|#region)/.test(words)) continue
    passages.push({ at: `${path}:${line}`, text: words, isHead: match.index === 0 || /^#!.*\n$/.test(masked.slice(0, match.index)) })
  }
  return passages
}

/** The passages of a file that contains only texts: each string is one. */
export function stringsOf(path: string, text: string): Passage[] {
  const tree = parseSync(text, { syntax: 'typescript', target: 'esnext' })
  const passages: Passage[] = []
  for (const node of nodesOf(tree)) {
    const value = node.type === 'StringLiteral' ? node.value : node.type === 'TemplateElement' ? node.raw : undefined
    if (typeof value !== 'string' || !isNode(node)) continue
    const line = Buffer.from(text)
      .subarray(0, node.span.start - 1)
      .toString()
      .split('\n').length
    passages.push({ at: `${path}:${line}`, text: value, isHead: false })
  }
  return passages
}

/** The paragraphs of a page, without code blocks, link targets and comments. */
export function paragraphsOf(path: string, text: string): Passage[] {
  const passages: Passage[] = []
  let isCode = false
  let begun = 0
  let lines: string[] = []
  const end = () => {
    if (lines.length > 0) passages.push({ at: `${path}:${begun}`, text: lines.join('\n'), isHead: false })
    lines = []
  }
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*```/.test(line)) isCode = !isCode
    const isText = !isCode && !/^\s*```|^ {4}|^\s*<|^\s*$/.test(line)
    const startsAnother = /^\s*([-*#|]|\d+\.)/.test(line)
    if (!isText || startsAnother) end()
    if (!isText) continue
    if (lines.length === 0) begun = index + 1
    lines.push(line.replace(/\]\([^)]*\)/g, ']'))
  }
  end()
  return passages
}

const codeFolders = ['src', 'dashboard/src', 'packages/client', 'tools', 'bench', 'test', 'examples']
const textFiles = (root: string) => ['dashboard/src/texts.ts', ...filesBelow(root, 'dashboard/src/texts', '.ts'), 'src/base/refusals.ts']

export function readPassages(root: string): Passage[] {
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const code = codeFolders
    .flatMap((folder) => [...filesBelow(root, folder, '.ts'), ...filesBelow(root, folder, '.tsx')])
    .filter((path) => !isGenerated(path))
  const pages = [...filesBelow(root, 'docs', '.md'), 'README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']
  return [
    ...code.flatMap((path) => commentsOf(path, read(path))),
    ...textFiles(root).flatMap((path) => stringsOf(path, read(path))),
    ...pages.filter((path) => !isGenerated(path)).flatMap((path) => paragraphsOf(path, read(path))),
  ]
}

if (import.meta.main) {
  const passages = readPassages(process.cwd())
  const problems = passages.flatMap(judge)
  console.log(`${passages.length} passages, ${problems.length} findings`)
  for (const { at, rule, says } of problems) console.error(`${at}  ${says}  [${rule}]`)
  if (problems.length > 0) process.exitCode = 1
}
