/**
 * Table ownership: each table has one owning module, and only that module names it in SQL, except the shared commits of modules.config.mjs.
 * Statements take time, randomness and ids as parameters. Reads sql`` constants and plain strings that are statements from the syntax tree;
 * table names from the migrations.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readModuleHeaders } from './module-headers.ts'
import { filesBelow, isNode, type ModuleList, nameOf, nodesOf, type Problem, placeOf, type SourceFile } from './source-files.ts'

export interface Statement {
  text: string
  at: string
  file: SourceFile
}

const machineValues =
  /\b(?:now|random|random_normal|setseed|gen_random_uuid|gen_random_bytes|uuidv4|uuidv7|uuid_generate_v\w+|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\s*\(|\b(?:current_timestamp|current_time|current_date|localtimestamp|localtime)\b/i

const looksLikeSql =
  /^\s*(?:select\s|insert\s+into\s|update\s+"?\w+"?\s+(?:as\s+\w+\s+)?set\s|delete\s+from\s|with\s+\w+.*\bas\s*\(|merge\s+into\s|copy\s+"?\w+"?\s*(?:\(|from|to)|truncate\s|lock\s+table\s|(?:create|alter|drop)\s+(?:table|index|unique|view)\s)/i

/** Without comments, string literals and column aliases. */
function bareSql(text: string): string {
  return text
    .replace(/'(?:[^']|'')*'|--[^\n]*|\/\*[\s\S]*?\*\/|\$(\w*)\$[\s\S]*?\$\1\$/g, ' ')
    .replace(/\bas\s+"[^"]*"/gi, ' ')
    .replace(/"(\w+)"/g, '$1')
}

function statementsIn(files: SourceFile[]): Statement[] {
  return files
    .filter((file) => !file.isTest)
    .flatMap((file) => {
      const statements: Statement[] = []
      const tagged = new Set<unknown>()
      for (const node of nodesOf(file.tree)) {
        let text: string | undefined
        if (node.type === 'TaggedTemplateExpression' && isSqlTag(node.tag)) {
          tagged.add(node.template)
          text = templateText(node.template)
        } else if (node.type === 'TemplateLiteral' && !tagged.has(node)) {
          const plain = templateText(node)
          if (looksLikeSql.test(plain)) text = plain
        } else if (node.type === 'StringLiteral' && looksLikeSql.test(String(node.value))) text = String(node.value)
        if (text !== undefined) statements.push({ text, at: placeOf(file, node), file })
      }
      return statements
    })
}

/** `sql` and its variants, such as `sql.part`. */
const isSqlTag = (tag: unknown) => nameOf(tag) === 'sql' || (isNode(tag) && tag.type === 'MemberExpression' && nameOf(tag.object) === 'sql')

/** An interpolated value is another statement, or a name: it is checked where it is defined. */
function templateText(template: unknown): string {
  if (!isNode(template) || !Array.isArray(template.quasis)) return ''
  return template.quasis.map((quasi: unknown) => (isNode(quasi) ? String(quasi.cooked ?? quasi.raw) : '')).join(' $0 ')
}

/** Tables after all migrations, without partitions. */
function tablesOf(migrations: { path: string; text: string }[]): Set<string> {
  const tables = new Set<string>()
  for (const { text } of migrations) {
    const change =
      /\bcreate\s+(?:unlogged\s+)?table\s+(?:if\s+not\s+exists\s+)?(\w+)(\s+partition\s+of)?|\bdrop\s+table\s+(?:if\s+exists\s+)?(\w+)|\balter\s+table\s+(\w+)\s+rename\s+to\s+(\w+)/gi
    for (const [, created, partition, dropped, renamed, to] of bareSql(text).matchAll(change)) {
      if (created !== undefined && partition === undefined) tables.add(created.toLowerCase())
      for (const gone of [dropped, renamed]) if (gone !== undefined) tables.delete(gone.toLowerCase())
      if (to !== undefined) tables.add(to.toLowerCase())
    }
  }
  return tables
}

export function checkTables(
  root: string,
  moduleList: ModuleList,
  files: SourceFile[],
): { problems: Problem[]; statements: number; tables: number } {
  const problems: Problem[] = []
  const migrations = filesBelow(root, 'src/db/migrations', '.sql').map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
  const statements = statementsIn(files)
  // A module may own a table that it creates itself, such as the list of migrations.
  const madeInCode = statements.map((statement) => ({ path: statement.at, text: statement.text }))
  const tables = new Set([...tablesOf(migrations), ...tablesOf(madeInCode)])

  const owners = new Map<string, string>()
  for (const header of readModuleHeaders(moduleList, files).headers) {
    for (const table of header.owns) {
      if (!tables.has(table)) problems.push({ rule: 'table-owner', at: header.path, says: `owns ${table}, which no migration makes` })
      const other = owners.get(table)
      if (other !== undefined) problems.push({ rule: 'table-owner', at: header.path, says: `owns ${table}, and so does ${other}` })
      owners.set(table, header.module)
    }
  }
  for (const table of tables) {
    if (!owners.has(table)) problems.push({ rule: 'table-owner', at: 'src/db/migrations/', says: `no module owns ${table}` })
  }

  for (const { text, at, file } of statements) {
    const bare = bareSql(text)
    const named = new Set(
      [...bare.matchAll(/(?<![.\w$])[a-z_]\w*/gi)]
        .filter((word) => !/\bas\s+$/i.test(bare.slice(0, word.index)))
        .map((word) => word[0].toLowerCase()),
    )
    for (const table of named) {
      if (!tables.has(table) || owners.get(table) === file.module || moduleList.commonCommits.includes(file.path)) continue
      problems.push({ rule: 'table-owner', at, says: `names ${table}, which belongs to ${owners.get(table) ?? 'no module'}` })
    }
    refuseMachineValues(bare, at)
  }
  for (const { path, text } of migrations) refuseMachineValues(bareSql(text), path)
  return { problems, statements: statements.length, tables: tables.size }

  function refuseMachineValues(bare: string, at: string) {
    const found = machineValues.exec(bare)?.[0]
    if (found !== undefined)
      problems.push({ rule: 'statements-take-parameters', at, says: `${found.trim()}: pass the time, randomness or id as a parameter` })
  }
}
