/**
 * Restore after the loss of the whole program, from a backup made before the queue was delivered. Postrider sends no queued mail
 * automatically, takes new mail at once, and releases the old mail on command.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { embeddedUrlIfRunning, openDb } from '#db'
import { listAudit } from '#members'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

const queued = 1000
const batchSize = 100
const script = join(process.cwd(), 'bin/postrider.js')
const soon = { timeout: 40_000, interval: 50 }

let peer: FakeMx
/** While false, the peer defers mail to the old recipients. */
let isOpen = false
let service: ServiceProcess
let folder: string
beforeAll(async () => {
  const old = ({ stage, argument }: { stage: string; argument: string }) => stage === 'rcpt' && !argument.includes('new@')
  peer = await startFakeMx({ script: (event) => (old(event) && !isOpen ? '450 4.2.1 The mailbox is busy' : undefined) })
  folder = await mkdtemp(join(tmpdir(), 'postrider-restore-'))
  service = await startServiceProcess({
    POSTRIDER_RELAY: `smtp://127.0.0.1:${peer.port}`,
    POSTRIDER_DELIVERY_PROCESSES: '1',
    POSTRIDER_RETRY_BASE_SECONDS: '600',
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
  })
  await service.command('domain', 'add', 'shop.example.com', '--trust')
}, 120_000)
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await peer.close()
  await rm(folder, { recursive: true, force: true })
})

const send = (to: string[]) =>
  service.call('POST', '/emails/batch', {
    from: 'orders@shop.example.com',
    emails: to.map((one) => ({ to: [one], subject: 's', text: 't' })),
  })
const refusal = (...words: string[]) =>
  promisify(execFile)(process.execPath, [script, ...words], { env: service.environment as NodeJS.ProcessEnv }).then(
    () => '',
    ({ stderr, code }: { stderr: string; code: number }) => `${code}: ${stderr}`,
  )

/** Newest first. */
async function restoresInAuditLog(): Promise<Awaited<ReturnType<typeof listAudit>>['entries']> {
  const db = await openDb({
    url: (await embeddedUrlIfRunning(String(service.environment.POSTRIDER_DATA))) as string,
    poolSize: 1,
    applicationName: 'test',
  })
  try {
    return (await listAudit(db, { tenantId: null, action: 'restore' }, { number: 1, size: 10 })).entries
  } finally {
    await db.close()
  }
}

describe('restoring a backup', () => {
  test('sends no mail that was queued until it is resumed, and takes and sends new mail meanwhile', async () => {
    const queue = async () => ((await service.command('queue')) as { recipientDomains: Record<string, unknown>[] }).recipientDomains
    for (let batch = 0; batch < queued / batchSize; batch++)
      expect((await send(Array.from({ length: batchSize }, (_, at) => `n${batch}-${at}@one.example`))).status).toBe(200)
    await vi.waitFor(async () => expect(await queue()).toMatchObject([{ deferred: queued }]), soon)
    const file = join(folder, 'saved')
    const made = await service.command('backup', file)
    expect(made).toMatchObject({ file, withSecret: false })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const secret = (await readFile(join(service.folder, 'secret'), 'utf8')).trim()
    expect((await readFile(file)).includes(secret)).toBe(false)

    isOpen = true
    await service.command('queue', 'flush')
    await vi.waitFor(() => expect(peer.messages).toHaveLength(queued), soon)
    await service.stop()

    // Another machine: an empty data directory, then with a wrong secret, then with the right one.
    service.environment.POSTRIDER_DATA = join(folder, 'data')
    expect(await refusal('restore', file)).toMatch(/^2: .*does not contain POSTRIDER_SECRET, and it is not set/)
    service.environment.POSTRIDER_SECRET = 'a secret of somebody else, long enough'
    expect(await refusal('restore', file)).toMatch(/^2: .*was made with another POSTRIDER_SECRET/)
    service.environment.POSTRIDER_SECRET = secret
    expect(await service.command('restore', file)).toMatchObject({ held: queued, released: 0 })
    expect(await refusal('restore', file)).toMatch(/^1: this installation is not empty/)

    await service.start()
    await service.command('queue', 'flush')
    expect((await send(['new@one.example'])).status).toBe(200)
    await vi.waitFor(() => expect(peer.messages.map(({ recipients }) => recipients[0]).slice(queued)).toEqual(['new@one.example']), soon)
    expect(await queue()).toMatchObject([{ held: queued, ready: 0, deferred: 0, sending: 0 }])

    expect(await service.command('restore', '--resume')).toEqual({ resumed: true, released: queued })
    await vi.waitFor(() => expect(peer.messages).toHaveLength(2 * queued + 1), soon)
    expect(new Set(peer.messages.slice(queued).flatMap(({ recipients }) => recipients)).size).toBe(queued + 1)
    await vi.waitFor(async () => expect(await queue()).toEqual([]), soon)
    expect(await service.command('restore', '--resume')).toEqual({ resumed: false, released: 0 })
    expect((await restoresInAuditLog())[0]).toMatchObject({ actor: { kind: 'command' }, data: { words: [], resume: true } })
    expect((await restoresInAuditLog()).at(-1)).toMatchObject({ actor: { kind: 'command' }, data: { words: [file] } })
  }, 240_000)

  test('with the secret in the file needs nothing else, and with --resume the queue goes at the start', async () => {
    isOpen = false
    expect((await send(['a@two.example', 'b@two.example'])).status).toBe(200)
    const file = join(folder, 'with-secret')
    expect(await service.command('backup', file, '--with-secret')).toMatchObject({ withSecret: true })
    await service.stop()
    service.environment.POSTRIDER_DATA = join(folder, 'third')
    delete service.environment.POSTRIDER_SECRET
    expect(await service.command('restore', file, '--resume')).toMatchObject({ held: 0, released: 2, secretKept: true })
    expect((await stat(join(folder, 'third', 'secret'))).mode & 0o777).toBe(0o600)
    const before = peer.messages.length
    isOpen = true
    await service.start()
    await vi.waitFor(() => expect(peer.messages).toHaveLength(before + 2), soon)
  }, 180_000)
})
