/**
 * Migrations only add (expand). During a rolling upgrade, programs of the version before run on the new schema, so a migration must not take
 * away or change anything that they use. A later release may remove it (contract): such a statement follows a comment
 * `-- contract: unused since <version>`.
 */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { filesBelow, type Problem } from './source-files.ts'

const folder = 'src/db/migrations'
/** The first migration creates everything. */
const initial = /^0001-/
const reason = /--\s*contract: unused since \d+\.\d+/i

const forbidden: readonly [RegExp, string][] = [
  [/^drop\s+(?!index\b|function\b|trigger\b)/i, 'drops an object that the version before may use'],
  [/^truncate\b/i, 'deletes rows that the version before may use'],
  [/\bdrop\s+(column|constraint\b.*\bcascade)/i, 'drops a column that the version before may use'],
  [/^alter\s+table\s+\S+\s+drop\s+(?!constraint|default)/i, 'drops a column that the version before may use'],
  [/\brename\b/i, 'renames an object that the version before uses under its old name'],
  [/\balter\s+(column\s+)?\S+\s+(set\s+data\s+)?type\b/i, 'changes the type of a column that the version before uses'],
  [/\balter\s+(column\s+)?\S+\s+set\s+not\s+null/i, 'forbids null in a column that the version before may leave empty'],
  [
    /^alter\s+table\b(?=.*\badd\s+(column\s+)?\w+\s)(?=.*\bnot\s+null\b)(?!.*\b(default|generated)\b)/is,
    'adds a column without a default, which the version before does not fill',
  ],
]

/** The statements of a file, each with the comments before it, and the number of its first line. */
function statementsOf(text: string): { statement: string; comments: string; line: number }[] {
  const found: { statement: string; comments: string; line: number }[] = []
  let comments = ''
  let statement = ''
  let line = 0
  let quote: string | undefined
  for (const [index, row] of text.split('\n').entries()) {
    if (statement === '' && /^\s*(--.*)?$/.test(row)) {
      comments += `${row}\n`
      continue
    }
    if (statement === '') line = index + 1
    const code = quote ? row : row.replace(/\s*--.*$/, '')
    for (const mark of code.match(/\$\w*\$/g) ?? []) quote = quote === undefined ? mark : quote === mark ? undefined : quote
    statement += `${code}\n`
    if (quote !== undefined || !code.trimEnd().endsWith(';')) continue
    found.push({ statement: statement.trim(), comments, line })
    statement = ''
    comments = ''
  }
  return found
}

/** `files`: name and text, in order. */
export function checkMigrations(files: readonly { name: string; text: string }[]): Problem[] {
  return files
    .filter(({ name }) => !initial.test(name))
    .flatMap(({ name, text }) =>
      statementsOf(text).flatMap(({ statement, comments, line }) => {
        const says = forbidden.find(([form]) => form.test(statement))?.[1]
        if (says === undefined || reason.test(comments)) return []
        return [{ rule: 'migrations-only-add', at: `${folder}/${name}:${line}`, says }]
      }),
    )
}

export const readMigrationFiles = (root: string) =>
  filesBelow(root, folder, '.sql').map((path) => ({ name: basename(path), text: readFileSync(join(root, path), 'utf8') }))
