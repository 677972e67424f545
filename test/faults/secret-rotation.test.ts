/** Rotation of the secret: the processes, their environments, and a command that is killed. */
import { execFile, spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test, vi } from 'vitest'
import { openSecrets, pause, systemClock, systemRandom } from '#base'
import { embeddedUrlIfRunning } from '#db'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

// Each test starts the whole program several times.
vi.setConfig({ testTimeout: 480_000 })

const script = join(process.cwd(), 'bin/postrider.js')
const run = promisify(execFile)

const kept = async (service: ServiceProcess) => (await readFile(join(service.folder, 'secret'), 'utf8')).trim()

/** All descendants of a process. */
async function descendantsOf(parent: number): Promise<number[]> {
  const found: number[] = []
  const parents = new Map<number, number[]>()
  for (const name of await readdir('/proc')) {
    const status = /^\d+$/.test(name) ? await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '') : ''
    const of = Number(status.slice(status.lastIndexOf(')') + 2).split(' ')[1])
    if (status !== '') parents.set(of, [...(parents.get(of) ?? []), Number(name)])
  }
  for (const queue = [parent]; queue.length > 0; ) {
    const children = parents.get(queue.pop() ?? 0) ?? []
    found.push(...children)
    queue.push(...children)
  }
  return found
}

/** Sends one email after another until it is stopped. Counts the emails that were not accepted. */
function sending(service: ServiceProcess) {
  let [ended, sent] = [false, 0]
  const refused: unknown[] = []
  const ids: string[] = []
  const going = (async () => {
    while (!ended) {
      const body = {
        from: 'hello@simulator.test',
        to: ['delivered@simulator.test'],
        subject: 'During',
        html: '<a href="https://a.example/">x</a>',
      }
      const answer = await service.call('POST', '/emails', body, service.testKey)
      if (answer.status === 200) ids.push((answer.body.data as { id: string }).id)
      else refused.push(answer.body)
      sent++
      await pause(systemClock, 100)
    }
  })()
  return {
    async end() {
      ended = true
      await going
      return { sent, refused, ids }
    },
  }
}

const statusOf = async (service: ServiceProcess, id: string) =>
  ((await service.call('GET', `/emails/${id}`, undefined, service.testKey)).body.data as { status: string }).status

describe.skipIf(process.platform !== 'linux')('secrets', () => {
  test('stand in the environment of no process that the service has started, nor does the address of the database', async () => {
    await using service = await startServiceProcess({
      POSTRIDER_METRICS_TOKEN: 'metrics-token-of-the-test',
      POSTRIDER_SEPARATE_PROCESSES: 'delivery,inbound,webhooks',
      POSTRIDER_RELAY: 'smtp://user:relay-password-of-the-test@127.0.0.1:9',
      POSTRIDER_SECRET: 'a-secret-of-the-test-itself',
      PGPASSWORD: 'database-password-of-the-test',
    })
    const { serve, postgres, delivery, inbound, webhooks } = await service.processes()
    const url = (await embeddedUrlIfRunning(service.folder)) ?? ''
    const password = /postrider:([^@]+)@/.exec(url)?.[1] ?? ''
    expect(password).not.toBe('')
    const pids = [...(await descendantsOf(serve)), ...(postgres ? [postgres, ...(await descendantsOf(postgres))] : [])]
    for (const pid of [...delivery, ...inbound, ...webhooks, postgres]) expect(pids).toContain(pid)
    expect(delivery.length * inbound.length * webhooks.length).toBeGreaterThan(0)
    for (const pid of pids) {
      const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
      const names = environment.split('\0').map((one) => one.split('=')[0])
      for (const name of ['DATABASE_URL', 'POSTRIDER_SECRET', 'POSTRIDER_RELAY', 'POSTRIDER_METRICS_TOKEN', 'PGPASSWORD'])
        expect(names, String(pid)).not.toContain(name)
      for (const value of [password, 'a-secret-of-the-test-itself', 'of-the-test'])
        expect(environment.includes(value), `${pid}: ${value}`).toBe(false)
      // Nor on the command line.
      expect(await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).not.toContain(password)
    }
    expect((await service.call('GET', '/limits', undefined)).status).toBe(200)
  })
})

describe('postrider secret rotate', () => {
  test('while the service runs fails no send, and from then on the new secret starts it and the old one does not', async () => {
    await using service = await startServiceProcess({ POSTRIDER_SEND_LIMIT: 'unlimited', POSTRIDER_RATE_LIMIT: 'unlimited' })
    const old = await kept(service)
    const load = sending(service)
    const told = await service.command('secret', 'rotate')
    expect(told).toMatchObject({ resumed: false, secretKept: true })
    const { sent, refused, ids } = await load.end()
    expect(refused).toEqual([])
    expect(sent).toBeGreaterThan(20)
    for (const id of ids) await expect.poll(() => statusOf(service, id), { timeout: 20_000 }).toBe('sent')
    const now = await kept(service)
    expect(now).not.toBe(old)
    expect(openSecrets(now, systemRandom).fingerprint).toBe(told.to)
    expect(service.output()).not.toMatch(/made with another POSTRIDER_SECRET|failed to/)

    // A child started after the rotation receives the new secret.
    const [killed = 0] = (await service.processes()).delivery
    process.kill(killed, 'SIGKILL')
    await expect.poll(async () => (await service.processes()).delivery.some((pid) => pid !== killed), { timeout: 20_000 }).toBe(true)
    await service.stop()

    const backup = join(service.folder, 'after.backup')
    await run(process.execPath, [script, 'backup', backup, '--with-secret'], { env: service.environment as NodeJS.ProcessEnv })
    service.environment.POSTRIDER_SECRET = old
    await expect(service.start()).rejects.toThrow('is not the secret of this database')
    delete service.environment.POSTRIDER_SECRET
    await service.start()
    const body = { from: 'hello@simulator.test', to: ['delivered@simulator.test'], subject: 'After', text: 'x' }
    const answer = await service.call('POST', '/emails', body, service.testKey)
    expect(answer.status).toBe(200)
    await expect.poll(() => statusOf(service, (answer.body.data as { id: string }).id), { timeout: 20_000 }).toBe('sent')

    const elsewhere = await mkdtemp(join(tmpdir(), 'postrider-restored-'))
    const env = { ...service.environment, POSTRIDER_DATA: elsewhere } as NodeJS.ProcessEnv
    await run(process.execPath, [script, 'restore', backup], { env })
    expect((await readFile(join(elsewhere, 'secret'), 'utf8')).trim()).toBe(now)
    await run(process.execPath, [script, 'domain', 'list'], { env })
    await rm(elsewhere, { recursive: true, force: true })
  })

  test('that is killed goes on when it is called again, and the service runs and starts in between', async () => {
    await using service = await startServiceProcess({ POSTRIDER_SEND_LIMIT: 'unlimited', POSTRIDER_RATE_LIMIT: 'unlimited' })
    const failpoints = await mkdtemp(join(tmpdir(), 'postrider-fuses-'))
    const old = await kept(service)
    const load = sending(service)
    for (const place of ['announced', 'domains.rsa_private', 'kept']) {
      await writeFile(join(failpoints, place), '')
      const env = { ...service.environment, POSTRIDER_FAILPOINTS: failpoints } as NodeJS.ProcessEnv
      const killed = spawn(process.execPath, [script, 'secret', 'rotate'], { env, stdio: 'ignore' })
      expect(await new Promise((resolve) => killed.once('exit', (_code, signal) => resolve(signal)))).toBe('SIGKILL')
      expect((await kept(service)) === old).toBe(place !== 'kept')
    }
    const { refused } = await load.end()
    expect(refused).toEqual([])
    await service.stop()
    await service.start()
    expect(await service.command('secret', 'rotate')).toMatchObject({ resumed: true })
    await service.stop()
    await service.start()
    expect((await service.call('GET', '/domains', undefined)).status).toBe(200)
    await rm(failpoints, { recursive: true, force: true })
  })

  test('with the secret given as a setting takes the new one beside it, which starts the service before and after', async () => {
    const [old, next] = ['the-old-secret-of-the-test', 'the-new-secret-of-the-test']
    await using service = await startServiceProcess({ POSTRIDER_SECRET: old })
    await expect(service.command('secret', 'rotate')).rejects.toThrow('POSTRIDER_SECRET_NEW')
    await service.stop()
    service.environment.POSTRIDER_SECRET_NEW = next
    await service.start()
    expect(await service.command('secret', 'rotate')).toMatchObject({ secretKept: false })
    await service.stop()
    await service.start()
    await service.stop()
    service.environment.POSTRIDER_SECRET = next
    delete service.environment.POSTRIDER_SECRET_NEW
    await service.start()
    await service.stop()
    service.environment.POSTRIDER_SECRET = old
    await expect(service.start()).rejects.toThrow('is not the secret of this database')
  })

  test('with the secret given as a setting does not go on without the new one, which may exist nowhere else', async () => {
    const [old, next] = ['the-old-secret-of-the-test', 'the-new-secret-of-the-test']
    await using service = await startServiceProcess({ POSTRIDER_SECRET: old })
    const failpoints = await mkdtemp(join(tmpdir(), 'postrider-fuses-'))
    await writeFile(join(failpoints, 'announced'), '')
    const env = { ...service.environment, POSTRIDER_SECRET_NEW: next, POSTRIDER_FAILPOINTS: failpoints } as NodeJS.ProcessEnv
    const killed = spawn(process.execPath, [script, 'secret', 'rotate'], { env, stdio: 'ignore' })
    expect(await new Promise((resolve) => killed.once('exit', (_code, signal) => resolve(signal)))).toBe('SIGKILL')

    await expect(service.command('secret', 'rotate')).rejects.toThrow('POSTRIDER_SECRET_NEW')
    await service.stop()
    await service.start()
    service.environment.POSTRIDER_SECRET_NEW = next
    expect(await service.command('secret', 'rotate')).toMatchObject({ resumed: true, secretKept: false })
    await rm(failpoints, { recursive: true, force: true })
  })
})
