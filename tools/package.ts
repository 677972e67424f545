/**
 * `npm run package [folder]`: builds the npm packages of the program and of its client into a folder (artifacts/packages): the compiled
 * program (tools/bundle.ts) with source maps, the built dashboard, the documentation. It does not publish.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isBundled } from './bundled-packages.ts'

interface Manifest {
  name: string
  version: string
  description: string
  license: string
  engines: Record<string, string>
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  optionalDependencies: Record<string, string>
}

const root = join(import.meta.dirname, '..')
/** Copied as they are. */
const copied = ['dashboard/dist', 'dashboard/reference', 'docs', 'LICENSE', 'README.md', 'CHANGELOG.md', 'SECURITY.md']
function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** The program's manifest as published. Node is not among the packages: bin/postrider.js fetches it where the installed one is too old. */
function publishedManifest(): object {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
  const { name, version, description, license, dependencies, devDependencies, optionalDependencies } = manifest
  const isOf =
    (prefix: string) =>
    ([name]: [string, string]) =>
      name.startsWith(prefix)
  const optional = Object.entries(optionalDependencies)
  const [, nodeVersion] = optional.find(isOf('node-')) ?? []
  if (nodeVersion === undefined) throw new Error('package.json names no version of Node')
  return {
    name,
    version,
    description,
    license,
    type: 'module',
    keywords: ['email', 'smtp', 'dkim', 'transactional', 'self-hosted'],
    bin: { postrider: 'bin/postrider.js' },
    files: ['bin', 'lib', 'dashboard', 'docs', 'SECURITY.md', 'CHANGELOG.md'],
    dependencies: Object.fromEntries(Object.entries(dependencies).filter(([name]) => !isBundled(name))),
    optionalDependencies: Object.fromEntries(optional.filter(([name]) => !name.startsWith('node-'))),
    // Read by `postrider` to name the versions to install for traces.
    devDependencies: Object.fromEntries(Object.entries(devDependencies).filter(isOf('@opentelemetry/'))),
    config: { node: nodeVersion },
  }
}

function pack(folder: string, into: string): string {
  const output = execFileSync('npm', ['pack', folder, '--pack-destination', into, '--json', '--ignore-scripts'], { encoding: 'utf8' })
  const [packed] = Object.values(JSON.parse(output) as Record<string, { filename: string }>)
  if (!packed) throw new Error('npm pack made no file')
  return join(into, packed.filename)
}

/** Its output goes to standard error, because standard output is the caller's result. */
const runTool = (tool: string, ...words: string[]) =>
  void execFileSync(process.execPath, [join(root, 'tools', tool), ...words], { stdio: ['ignore', 2, 2] })

/** Builds the program into `folder`, which it empties first: compiled modules, dashboard, documentation and manifest, without its packages. */
export function buildProgram(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  runTool('build-dashboard.ts')
  runTool('bundle.ts', join(folder, 'lib'))
  for (const path of copied) cpSync(join(root, path), join(folder, path), { recursive: true })
  write(join(folder, 'bin/postrider.js'), readFileSync(join(root, 'bin/postrider.js'), 'utf8').replace('../src/main.ts', '../lib/main.js'))
  write(join(folder, 'package.json'), `${JSON.stringify(publishedManifest(), null, 2)}\n`)
}

/** Builds both packages; returns their files. */
export function buildPackages(into: string): string[] {
  mkdirSync(into, { recursive: true })
  const folder = join(into, 'postrider')
  buildProgram(folder)
  const client = join(root, 'packages/client')
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', client], { stdio: 'inherit' })
  return [pack(folder, into), pack(client, into)]
}

if (import.meta.main) {
  const files = buildPackages(resolve(process.argv[2] ?? join(root, 'artifacts/packages')))
  for (const file of files) console.log(`${file} (${Math.round(statSync(file).size / 1024)} KiB)`)
}
