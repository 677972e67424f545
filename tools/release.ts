/**
 * `npm run release -- --date 2027-01-31`: checks the version and the changelog, moves the unreleased changes under the version, and builds the
 * files of a release with their checksums and bill of materials. It does not commit, tag, push or publish.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildPackages } from './package.ts'
import {
  type Builder,
  builders,
  checkedDate,
  checksums,
  chooseBuilders,
  imageVersion,
  isReleased,
  releasedChangelog,
  releaseProblems,
} from './release-parts.ts'
import { readLockedSbom, type Shipped, sbomProblems, shippedPart } from './sbom.ts'
import { filesBelow } from './source-files.ts'

const usage = `npm run release -- --date YYYY-MM-DD [--dry-run]

Checks the version of package.json, the changelog and the working tree. Then moves the unreleased changes of CHANGELOG.md under the
version and the date, and builds into artifacts/release: npm packages, Debian packages, image archives, a CycloneDX bill of materials and
SHA256SUMS. Nothing is committed, tagged, pushed or published; the commands for that are printed.

  --date     the day of the release, for the changelog
  --dry-run  only checks, and prints what would be done; changes no file
  --help     prints this`

const root = join(import.meta.dirname, '..')
const artifacts = join(root, 'artifacts')
const into = join(artifacts, 'release')
const architectures = ['amd64', 'arm64']
const withImages = ['compose.yaml', ...readdirSync(join(root, 'packaging/kubernetes')).map((name) => `packaging/kubernetes/${name}`)]
/** Of the dashboard's dependencies, those that build it and are not part of it. */
const buildsDashboard = /^@types\/|vite|tailwind/
/** The script of /docs, copied as it is. */
const copiedReference = '@scalar/fastify-api-reference'

interface Manifest {
  name: string
  version: string
  scripts: Record<string, string>
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

const textOf = (path: string) => readFileSync(join(root, path), 'utf8')
const manifestOf = (path: string) => JSON.parse(textOf(path)) as Manifest
const git = (...words: string[]) => execFileSync('git', words, { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean)
const hasProgram = (name: string) => spawnSync(name, ['--version'], { stdio: 'ignore' }).error === undefined

function problemsOf(manifest: Manifest): string[] {
  const lock = JSON.parse(textOf('package-lock.json')) as { packages: Record<string, { version?: string }> }
  const others = ['dashboard', 'packages/client']
  return releaseProblems({
    version: manifest.version,
    otherVersions: {
      ...Object.fromEntries(others.map((folder) => [`${folder}/package.json`, manifestOf(`${folder}/package.json`).version])),
      ...Object.fromEntries(['', ...others].map((folder) => [`package-lock.json (${folder || 'root'})`, lock.packages[folder]?.version])),
      ...Object.fromEntries(withImages.map((path) => [path, imageVersion(textOf(path), manifest.name)])),
    },
    changelog: textOf('CHANGELOG.md'),
    tags: git('tag', '--list'),
    changes: git('status', '--porcelain').map((line) => line.slice(3)),
  })
}

function shippedBy(manifest: Manifest): Shipped {
  const dashboard = Object.entries(manifestOf('dashboard/package.json').devDependencies ?? {})
  const reference = manifest.devDependencies?.[copiedReference]
  if (reference === undefined) throw new Error(`package.json does not have ${copiedReference}`)
  return {
    name: manifest.name,
    version: manifest.version,
    installed: { ...manifest.dependencies, ...manifest.optionalDependencies },
    bundled: Object.fromEntries(dashboard.filter(([name]) => !buildsDashboard.test(name))),
    copied: { [copiedReference]: reference },
  }
}

/** Writes the bill of materials; returns the number of its components. Throws if it is not complete. */
function writeSbom(manifest: Manifest, file: string): number {
  const bill = shippedPart(readLockedSbom(root), shippedBy(manifest))
  const problems = sbomProblems(bill)
  if (problems.length > 0) throw new Error(`the bill of materials is not complete: ${problems.join('; ')}`)
  writeFileSync(file, `${JSON.stringify(bill, null, 2)}\n`)
  return bill.components.length
}

/** Runs a builder for each architecture; returns the archives that it wrote below artifacts/. */
function runBuilder({ script, makes }: Builder, manifest: Manifest): string[] {
  const beganMs = Date.now()
  for (const architecture of architectures)
    execFileSync('npm', ['run', script, '--', '--arch', architecture], { cwd: root, stdio: 'inherit' })
  const found = filesBelow(root, 'artifacts', '')
    .map((path) => join(root, path))
    .filter((path) => isReleased(basename(path), manifest) && !path.startsWith(into) && statSync(path).mtimeMs >= beganMs)
  if (found.length === 0) throw new Error(`npm run ${script} wrote no ${makes} below artifacts/`)
  return found
}

function build(manifest: Manifest, chosen: readonly Builder[]): void {
  rmSync(into, { recursive: true, force: true })
  mkdirSync(into, { recursive: true })
  const files = [...buildPackages(join(artifacts, 'packages')), ...chosen.flatMap((builder) => runBuilder(builder, manifest))]
  for (const file of files) copyFileSync(file, join(into, basename(file)))
  const components = writeSbom(manifest, join(into, `${manifest.name}-${manifest.version}.cdx.json`))
  const names = readdirSync(into)
  writeFileSync(join(into, 'SHA256SUMS'), checksums(names.map((name) => ({ name, octets: readFileSync(join(into, name)) }))))
  console.log(`\nartifacts/release, with a bill of ${components} components:`)
  for (const name of [...names, 'SHA256SUMS'].sort()) console.log(`  ${name} (${Math.ceil(statSync(join(into, name)).size / 1024)} KiB)`)
}

const nextSteps = ({ version }: Manifest) => `
Next, after a look at the files and at CHANGELOG.md:
  git commit -am "release: ${version}" && git tag -a v${version} -m "Postrider ${version}"
  git push && git push origin v${version}
  npm publish artifacts/release/postrider-${version}.tgz
  npm publish --access public artifacts/release/postrider-client-${version}.tgz`

function release(words: string[]): number {
  const { values } = parseArgs({
    args: words,
    options: { date: { type: 'string' }, 'dry-run': { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
  })
  if (values.help) {
    console.log(usage)
    return 0
  }
  const date = checkedDate(values.date)
  const manifest = manifestOf('package.json')
  const problems = problemsOf(manifest)
  const { chosen, leftOut } = chooseBuilders(builders, manifest.scripts, hasProgram)
  for (const problem of problems) console.error(`problem: ${problem}`)
  for (const reason of leftOut) console.log(reason)
  if (values['dry-run']) {
    const kinds = ['npm packages', ...chosen.map(({ makes }) => makes), 'a bill of materials', 'SHA256SUMS']
    console.log(`would move the unreleased changes of CHANGELOG.md to "## ${manifest.version} (${date})"`)
    console.log(`would build into artifacts/release: ${kinds.join(', ')}`)
  }
  if (problems.length > 0) return 1
  if (values['dry-run']) return 0
  writeFileSync(join(root, 'CHANGELOG.md'), releasedChangelog(textOf('CHANGELOG.md'), manifest.version, date))
  try {
    build(manifest, chosen)
  } catch (error) {
    git('checkout', '--', 'CHANGELOG.md')
    throw error
  }
  console.log(nextSteps(manifest))
  return 0
}

try {
  process.exitCode = release(process.argv.slice(2))
} catch (error) {
  console.error(`${(error as Error).message}\n\n${usage}`)
  process.exitCode = 2
}
