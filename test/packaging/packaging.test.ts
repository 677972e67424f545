/** Files shipped beside the program mention only metrics, settings, files and commands that exist. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { metricsPage, readConfig, settings } from '#base'
import { commandsHelp } from '#cli'

const read = (path: string) => readFileSync(path, 'utf8')
const found = (text: string, pattern: RegExp) => [...new Set([...text.matchAll(pattern)].map(([all, one]) => one ?? all))]
const known = new Set(Object.values(settings).map(({ env }) => env))
const packaged = [
  'compose.yaml',
  ...readdirSync('packaging', { recursive: true, encoding: 'utf8' })
    .map((name) => `packaging/${name}`)
    .filter((path) => statSync(path).isFile()),
  'README.md',
  ...readdirSync('docs')
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]
/** Settings of programs that use the service. */
const settingsOfOthers = ['POSTRIDER_URL', 'POSTRIDER_KEY', 'POSTRIDER_TEST_KEY']
/** Variables of the package's build. */
const variablesOfBuild = ['POSTRIDER_XZ_LEVEL']
/** Command lines that are not Postrider's or use an option that the command does not have. */
function wrongOf(lines: readonly string[]): string[] {
  const commands = commandsHelp()
  return lines.filter((line) => {
    const command = commands.find(({ name }) => `${line} `.startsWith(`${name} `))
    return !command || found(line, /(--[a-z-]+)/g).some((option) => !command.help.includes(option))
  })
}
/** The commands that a page has its reader type. */
const typedIn = (path: string) => found(read(path), /^ *```(?:sh|console)\n([^]*?)^ *```/gm).join('')

describe('the files that come with the program', () => {
  test('npm runs an install script only of a package that package.json names', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, { hasInstallScript?: true; os?: string[] }> }
    const { allowScripts } = JSON.parse(read('package.json')) as { allowScripts: Record<string, boolean> }
    const withScripts = Object.entries(packages).filter(([path, one]) => path !== '' && one.hasInstallScript)
    const names = withScripts.map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
    expect(names.filter((name) => allowScripts[name] === undefined)).toEqual([])
    expect(Object.keys(allowScripts).filter((name) => !names.includes(name))).toEqual([])
  })

  test.each(['packaging/grafana.json', 'packaging/alerts.yml', 'docs/operating.md'])('%s names only metrics that exist', async (path) => {
    const { text } = await metricsPage()
    const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]))
    const names = found(read(path), /\bpostrider_[a-z_]+[a-z]\b/g)
    expect(names.length).toBeGreaterThan(0)
    const unknown = names.filter((name) => !types.has(name) && types.get(name.replace(/_(bucket|count|sum)$/, '')) !== 'histogram')
    expect(unknown).toEqual([])
  })

  test('alerts join with "and" only sums, so that both sides have the same labels', () => {
    const expressions = found(read('packaging/alerts.yml'), /^ *expr: (.+)$/gm)
    expect(expressions.length).toBeGreaterThan(10)
    const joined = expressions.map((one) => one.split(' and ')).filter((sides) => sides.length > 1)
    expect(joined.length).toBeGreaterThan(0)
    expect(joined.flat().filter((side) => !/^(max|min|sum)\(/.test(side))).toEqual([])
  })

  test('the dashboard shows every metric of Postrider', async () => {
    const { text } = await metricsPage()
    const ours = found(text, /^# TYPE (postrider_\S+)/gm)
    const dashboard = JSON.stringify(JSON.parse(read('packaging/grafana.json')))
    expect(ours.filter((name) => !dashboard.includes(name))).toEqual([])
  })

  test.each(packaged)('%s names only settings that exist', (path) => {
    const names = found(read(path), /\bPOSTRIDER_[A-Z_]*[A-Z]\b/g)
    expect(names.filter((name) => !known.has(name) && ![...settingsOfOthers, ...variablesOfBuild].includes(name))).toEqual([])
  })

  test('the settings file of the service is one that the program takes', () => {
    const lines = read('packaging/postrider.env')
      .split('\n')
      .filter((line) => /^\w/.test(line))
    const config = readConfig(Object.fromEntries(lines.map((line) => line.split('=') as [string, string])))
    expect(config.smtpPort).toBe(25)
    // The resolver that the guide installs.
    expect(typedIn('docs/install.md')).toMatch(/apt-get install .*\bunbound\b/)
    expect(config.resolvers).toEqual(['127.0.0.1'])
  })

  test('the command of an installation reads the settings file as systemd does', () => {
    const values = {
      DATABASE_URL: 'postgres://a:p$w&x@db/postrider?sslmode=verify-full&sslrootcert=/ca.pem',
      POSTRIDER_TLS_REPORTS: 'Example <tls@a.test>',
    }
    const file = Object.entries({ ...values, POSTRIDER_POSTMASTER: '"a b"' }).map(([name, value]) => `${name}=${value}`)
    const folder = mkdtempSync(join(tmpdir(), 'postrider-command-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'settings'), ['# a comment', '', ...file].join('\n'))
    mkdirSync(join(folder, 'bin'))
    writeFileSync(join(folder, 'bin/postrider.js'), 'console.log(JSON.stringify({ ...process.env, given: process.argv.slice(2) }))')
    const script = read('packaging/postrider')
      .replaceAll('/etc/postrider.env', join(folder, 'settings'))
      .replace('program=/opt/postrider', `program=${folder}`)
      .replace('node=$program/node_modules/.bin/node', `node=${process.execPath}`)
      .replace('"$(id -u)" -eq 0', '1')
      .replace(/exec setpriv [^]*? -- \\\n *"/, 'exec "')
    const shown = execFileSync('sh', ['-c', script, 'postrider', 'key', 'list all'], { encoding: 'utf8' })
    const given = { ...values, POSTRIDER_POSTMASTER: 'a b', POSTRIDER_DATA: '/var/lib/postrider', given: ['key', 'list all'] }
    expect(JSON.parse(shown)).toMatchObject(given)
  })

  test('wherever an installation is made without the tools of the build, the dashboard is built before they go', () => {
    const scripts = (JSON.parse(read('package.json')) as { scripts: Record<string, string> }).scripts
    const typed = packaged.filter((path) => path.endsWith('.md')).flatMap((path) => typedIn(path).split('\n'))
    const installing = typed.filter((line) => /npm (ci|prune)\b/.test(line) && !line.includes('npm start') && !line.includes('npm test'))
    expect(installing.length).toBeGreaterThan(0)
    expect(installing.filter((line) => line !== 'npm ci && npm run build && npm prune --omit=dev --no-save')).toEqual([])
    expect(typed.flatMap((line) => found(line, /npm run ([\w-]+)/g)).filter((name) => !(name in scripts))).toEqual([])
  })

  test.each(packaged.filter((path) => path.endsWith('.md') && /\bpostrider /.test(typedIn(path))))(
    '%s names only commands that exist, and options they have',
    (path) => {
      expect(wrongOf(found(typedIn(path), /^(?:.*\s)?postrider ((?:[a-z]+ ?)+[^\n]*)/gm))).toEqual([])
    },
  )

  test('the texts of the dashboard name only commands that exist, and options they have', () => {
    const paths = ['dashboard/src/texts.ts', ...readdirSync('dashboard/src/texts').map((name) => `dashboard/src/texts/${name}`)]
    const lines = found(paths.map(read).join('\n'), /\bpostrider ([a-z-]+[^'`\\\n]*)/g)
    expect(lines.length).toBeGreaterThan(1)
    expect(wrongOf(lines)).toEqual([])
  })
})
