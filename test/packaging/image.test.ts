/**
 * The container image as a container runtime starts it: its layers unpacked, a read-only root, the image's user without capabilities, a process
 * space of its own and a volume. `unshare`, `chroot` and `setpriv` do it, because they also run where a runtime does not accept the machine's
 * control groups. Not covered are limits of control groups, separate networks and seccomp. As root, on Debian.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { buildImage } from '../../tools/container-image.ts'
import { freePort } from '../support/spawned-service.ts'

const run = promisify(execFile)
const maxMebioctets = 320

/** Of the image's configuration (OCI image specification, config.md). */
interface ImageConfig {
  User: string
  Env: string[]
  Entrypoint: string[]
  Cmd: string[]
  StopSignal: string
  Volumes: object
}

/** Unpacks the layers of an OCI archive (image-layout.md) into a folder. */
async function unpackImage(file: string, rootFolder: string): Promise<ImageConfig> {
  const layout = `${rootFolder}-layout`
  for (const path of [layout, rootFolder]) await mkdir(path)
  await run('tar', ['--extract', '--file', file, '--directory', layout])
  const blob = (digest: string) => join(layout, 'blobs', digest.replace(':', '/'))
  const parsed = async (path: string) => JSON.parse(await readFile(path, 'utf8')) as unknown
  const { manifests } = (await parsed(join(layout, 'index.json'))) as { manifests: [{ digest: string }] }
  const manifest = (await parsed(blob(manifests[0].digest))) as { config: { digest: string }; layers: { digest: string }[] }
  for (const { digest } of manifest.layers)
    await run('tar', ['--extract', '--gzip', '--numeric-owner', '--same-permissions', '--file', blob(digest), '--directory', rootFolder])
  return ((await parsed(blob(manifest.config.digest))) as { config: ImageConfig }).config
}

/** Mounts as of a runtime: $1 root folder, $2 volume. The remaining words start the program. */
const startScript = `set -e
root=$1 volume=$2; shift 2
mount --bind "$root" "$root"
mount -t tmpfs tmpfs "$root/dev"
for name in null zero full random urandom; do : > "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
mkdir -m 1777 "$root/dev/shm"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount --bind "$volume" "$root/data"
exec "$@"`

test('the image starts read-only without root, delivers a first email, another after an upgrade, and stops in order', async () => {
  const { file, treeOctets } = buildImage(process.arch === 'arm64' ? 'arm64' : 'amd64')
  expect(treeOctets / 2 ** 20).toBeLessThan(maxMebioctets)
  const folder = await mkdtemp(join(tmpdir(), 'postrider-image-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const [previous, current] = [join(folder, 'previous'), join(folder, 'current')]
  const config = await unpackImage(file, previous)
  await unpackImage(file, current)
  expect(config).toMatchObject({ User: '10001:10001', StopSignal: 'SIGTERM', Volumes: { '/data': {} } })
  for (const one of [previous, current]) await writeFile(join(one, 'etc/resolv.conf'), await readFile('/etc/resolv.conf'))
  const manifest = join(previous, 'app/node_modules/postrider/package.json')
  await writeFile(manifest, JSON.stringify({ ...JSON.parse(await readFile(manifest, 'utf8')), version: '0.0.9' }))
  const volume = join(folder, 'volume')
  // As a runtime makes a named volume: with the owner and mode of the image's folder.
  for (const name of ['data', 'secrets']) expect(await stat(join(previous, name))).toMatchObject({ uid: 10001, gid: 10001, mode: 0o40700 })
  await run('cp', ['--archive', join(previous, 'data'), volume])

  const port = await freePort()
  const settings = { HOST: '127.0.0.1', PORT: String(port), POSTRIDER_HOSTNAME: 'mail.postrider.test' }
  const ports = { POSTRIDER_SMTP_PORT: '0', POSTRIDER_SUBMISSION_PORT: '0', POSTRIDER_SUBMISSION_TLS_PORT: '0' }
  const env: Record<string, string> = {
    ...Object.fromEntries(config.Env.map((one) => one.split(/=(.*)/s).slice(0, 2) as [string, string])),
    ...settings,
    ...ports,
  }
  const programs = { ...env, PATH: `${env['PATH'] ?? ''}:/usr/sbin:/sbin:/bin` }
  const limits = ['--no-new-privs', '--inh-caps=-all', '--bounding-set=-all,+sys_chroot,+setuid,+setgid']
  let output = ''
  const start = (rootFolder: string): ChildProcess => {
    const words = ['--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child', '/bin/sh', '-c', startScript, 'start']
    const change = ['setpriv', ...limits, 'chroot', `--userspec=${config.User}`, '--groups=', rootFolder]
    const child = spawn('unshare', [...words, rootFolder, volume, ...change, ...config.Entrypoint, ...config.Cmd], { env: programs })
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
    onTestFinished(() => void child.kill('SIGKILL'))
    return child
  }
  const firstProcess = async ({ pid }: ChildProcess) => (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim()
  const versionOf = async (child: ChildProcess) => {
    const file = `/proc/${await firstProcess(child)}/root/app/node_modules/postrider/package.json`
    return (JSON.parse(await readFile(file, 'utf8')) as { version: string }).version
  }
  const stop = async (child: ChildProcess) => {
    process.kill(Number(await firstProcess(child)), 'SIGTERM')
    return (await once(child, 'exit'))[0] as number | null
  }
  const isReady = async () => (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.status
  const child = start(previous)
  await expect.poll(isReady, { timeout: 240_000 }).toBe(200)

  expect(await versionOf(child)).toBe('0.0.9')
  const pid = await firstProcess(child)
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  expect(status).toMatch(/^Uid:\s+10001\s+10001\s+10001/m)
  expect(status).toMatch(/^CapPrm:\s+0000000000000000$/m)
  expect(status).toMatch(/^CapEff:\s+0000000000000000$/m)
  expect(status).toMatch(/^NoNewPrivs:\s+1$/m)
  const inside = (user: string, ...words: string[]) =>
    run('nsenter', ['--target', pid, '--mount', '--pid', 'chroot', `--userspec=${user}`, previous, ...words], { env: programs })
  await expect(inside('0:0', '/bin/sh', '-c', 'echo x > /app/x')).rejects.toThrow(/Read-only file system/)
  expect((await inside(config.User, 'postrider', 'key', 'list')).stdout).toContain('test')

  const key = /svc_test_[0-9A-Za-z]{32}/.exec(output)?.[0] ?? ''
  const call = async (path: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const init = body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers }
    const answer = await fetch(`http://127.0.0.1:${port}/v1${path}`, init)
    return ((await answer.json()) as { data: { id: string; status: string } }).data
  }
  const accept = (subject: string) =>
    call('/emails', { from: 'hello@simulator.test', to: ['delivered@simulator.test'], subject, text: 'It works.' })
  const isSent = (id: string) => expect.poll(() => call(`/emails/${id}`)).toMatchObject({ status: 'sent' })
  const first = await accept('First')
  await isSent(first.id)
  const last = await accept('Perhaps still queued')
  expect(await stop(child)).toBe(0)

  const upgraded = start(current)
  await expect.poll(isReady, { timeout: 240_000 }).toBe(200)
  expect(await versionOf(upgraded)).not.toBe('0.0.9')
  for (const { id } of [first, last, await accept('After the upgrade')]) await isSent(id)
  expect(await stop(upgraded)).toBe(0)
})
