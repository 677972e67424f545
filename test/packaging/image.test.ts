/** The container image as an operator runs it: Podman, a read-only root, no capabilities, a volume. As root, with Debian's podman and buildah. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { buildImage } from '../../tools/container-image.ts'
import { freePort } from '../support/spawned-service.ts'

const run = promisify(execFile)
const maxMebioctets = 320

test('the image starts read-only without root, delivers a first email, keeps it over a restart, and stops in order', async () => {
  const { file, name, treeOctets } = buildImage(process.arch === 'arm64' ? 'arm64' : 'amd64')
  expect(treeOctets / 2 ** 20).toBeLessThan(maxMebioctets)
  const folder = await mkdtemp(join(tmpdir(), 'postrider-image-'))
  const storage = ['--root', join(folder, 'root'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs']
  const manager = ['--cgroup-manager', 'cgroupfs', '--events-backend', 'file', '--runtime', 'crun']
  const podman = async (...words: string[]) =>
    (await run('podman', [...storage, ...manager, ...words], { maxBuffer: 2 ** 26 })).stdout.trim()
  const container = `postrider-test-${process.pid}`
  onTestFinished(async () => {
    await podman('rm', '--force', '--time', '5', container).catch(() => undefined)
    await rm(folder, { recursive: true, force: true })
  })
  await podman('load', '--input', file)
  const [{ Config }] = JSON.parse(await podman('image', 'inspect', `localhost/${name}`)) as [{ Config: object }]
  expect(Config).toMatchObject({ User: '10001:10001', StopSignal: 'SIGTERM', Volumes: { '/data': {} } })

  const port = await freePort()
  const settings = { HOST: '127.0.0.1', PORT: String(port), POSTRIDER_HOSTNAME: 'mail.postrider.test' }
  const ports = { POSTRIDER_SMTP_PORT: '0', POSTRIDER_SUBMISSION_PORT: '0', POSTRIDER_SUBMISSION_TLS_PORT: '0' }
  const env = Object.entries({ ...settings, ...ports }).flatMap(([name, value]) => ['--env', `${name}=${value}`])
  // The network of the machine, because a network of its own would need a firewall.
  const limits = ['--read-only', '--cap-drop', 'ALL', '--cap-add', 'NET_BIND_SERVICE', '--security-opt', 'no-new-privileges']
  const place = ['--network', 'host', '--cgroups', 'disabled', '--volume', 'state:/data', '--tmpfs', '/tmp']
  const isReady = async () => (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.status
  const beganMs = performance.now()
  await podman('run', '--detach', '--name', container, ...limits, ...place, ...env, `localhost/${name}`)
  await expect.poll(isReady, { timeout: 120_000 }).toBe(200)
  console.log(`first start: ${Math.round(performance.now() - beganMs)} ms, ${Math.round(treeOctets / 2 ** 20)} MiB`)

  const status = await podman('exec', container, '/bin/sh', '-c', 'while read line; do echo "$line"; done < /proc/1/status')
  expect(status).toMatch(/^Uid:\s+10001\s+10001/m)
  // CAP_NET_BIND_SERVICE alone, in the bounding set.
  expect(status).toMatch(/^CapBnd:\s+0000000000000400$/m)
  expect(status).toMatch(/^CapEff:\s+0000000000000[04]00$/m)
  await expect(podman('exec', container, '/bin/sh', '-c', 'echo x > /app/x')).rejects.toThrow(/Read-only file system/)
  expect(await podman('exec', container, 'postrider', 'key', 'list')).toContain('test')

  const key = /svc_test_[0-9A-Za-z]{32}/.exec(await podman('logs', container))?.[0] ?? ''
  const call = async (path: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const answer = await fetch(
      `http://127.0.0.1:${port}/v1${path}`,
      body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers },
    )
    return ((await answer.json()) as { data: { id: string; status: string } }).data
  }
  const email = { from: 'hello@simulator.test', to: ['delivered@simulator.test'], subject: 'First', text: 'It works.' }
  const { id } = await call('/emails', email)
  await expect.poll(() => call(`/emails/${id}`)).toMatchObject({ status: 'sent' })

  await podman('stop', '--time', '60', container)
  expect(await podman('inspect', '--format', '{{.State.ExitCode}}', container)).toBe('0')
  const restartedMs = performance.now()
  await podman('start', container)
  await expect.poll(isReady, { timeout: 120_000 }).toBe(200)
  console.log(`restart: ${Math.round(performance.now() - restartedMs)} ms`)
  expect(await call(`/emails/${id}`)).toMatchObject({ status: 'sent' })
  await podman('stop', '--time', '60', container)
  expect(await podman('inspect', '--format', '{{.State.ExitCode}}', container)).toBe('0')
})
