/** Generates reference pages from the program's catalogues: refusals, settings, commands. Pure: catalogue in, Markdown out. */

const row = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`

function page(title: string, introduction: string[], head: string[], rows: string[][]): string {
  return [`# ${title}`, '', ...introduction, '', row(head), row(head.map(() => '---')), ...rows.map(row), ''].join('\n')
}

const generated = (source: string) => `Generated from \`${source}\` by \`npm run golden\`.`

export interface RefusalEntry {
  status: number
  means: string
  suggestion: string
}

/** docs/generated/errors.md. */
export function errorsDocument(refusals: Record<string, RefusalEntry>): string {
  return page(
    'Error codes',
    [
      `${generated('src/base/refusals.ts')} A code never changes its meaning; messages are for people and may change.`,
      'Every error reply has the form `{ "success": false, "error": { "code", "message", "suggestion", "field"?, "details"? }, "meta": { "requestId" } }`.',
    ],
    ['code', 'status', 'when', 'what to do'],
    Object.entries(refusals).map(([code, { status, means, suggestion }]) => [`\`${code}\``, String(status), means, suggestion]),
  )
}

export interface SettingEntry {
  env: string
  default: string
  means: string
}

/** docs/generated/config.md. */
export function configDocument(settings: Record<string, SettingEntry>): string {
  const shown = (value: string) =>
    value.includes('`') || /^(none|all|cores|embedded|system|generated)\b/.test(value) || value.includes(' ') ? value : `\`${value}\``
  return page(
    'Settings',
    [`${generated('src/base/config.ts')} All are environment variables, read once at start; an empty value counts as absent.`],
    ['variable', 'default', 'meaning'],
    Object.values(settings).map((setting) => [`\`${setting.env}\``, shown(setting.default), setting.means]),
  )
}

/** docs/generated/cli.md, from each command's own `--help`. */
export function commandsDocument(commands: readonly { name: string; help: string }[]): string {
  const parts = commands.map(({ name, help }) => `## ${name}\n\n\`\`\`\n${help.trimEnd()}\n\`\`\`\n`)
  return ['# Command line', '', `${generated('src/cli/')} In a checkout: \`npx postrider <command>\`.`, '', ...parts].join('\n')
}
