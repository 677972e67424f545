/** Orders at a CA that refuses in their middle, and certificates whose row cannot be written at once. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openIds, openSecrets, silentLog, systemClock, systemRandom } from '#base'
import { listCertificates, startObtaining } from '#certificates'
import type { Db } from '#db'
import { obtainCertificate } from '../../src/certificates/acme-order.ts'
import { makeAuthority } from '../support/certificate-authority.ts'
import { testDatabase } from '../support/database.ts'

const name = 'mail.host.test'
const secrets = openSecrets('a secret for tests only', systemRandom)
const ready = vi.hoisted(() => ({ obtained: undefined as { cert: string; key: string; fromMs: number; toMs: number } | undefined }))
vi.mock('../../src/certificates/acme-order.ts', async (original) => {
  const real = await original<typeof import('../../src/certificates/acme-order.ts')>()
  const obtain: typeof real.obtainCertificate = async (...given) => ready.obtained ?? real.obtainCertificate(...given)
  return { ...real, obtainCertificate: obtain }
})

async function openDb(): Promise<Db> {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  return database.db
}

/** A CA that knows an earlier proof of the name, and answers 429 from the first look at the finalised order. */
async function startRefusingCa(): Promise<{ directory: string; asked: string[] }> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    asked.push(path)
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const order = { status: 'ready', authorizations: [`${base}/authorization`], finalize: `${base}/finalize` }
    const answers: Record<string, unknown> = {
      '/dir': { newNonce: `${base}/nonce`, newAccount: `${base}/account`, newOrder: `${base}/order` },
      '/account': { status: 'valid' },
      '/order': order,
      '/authorization': { status: 'valid', identifier: { type: 'dns', value: name }, challenges: [] },
      '/finalize': { ...order, status: 'processing' },
    }
    const status = path === '/order/1' ? 429 : path === '/order' ? 201 : 200
    const location = path === '/order' ? { location: `${base}/order/1` } : path === '/account' ? { location: `${base}/account/1` } : {}
    response.writeHead(status, { 'replay-nonce': 'abc', 'retry-after': '7200', 'content-type': 'application/json', ...location })
    response.end(JSON.stringify(answers[path] ?? { detail: 'too many requests' }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { directory: `http://127.0.0.1:${(server.address() as AddressInfo).port}/dir`, asked }
}

test('a refusal while an order is looked at ends it with the wait, also if the challenge cannot be removed', async () => {
  const db = await openDb()
  const away: Db = {
    ...db,
    run: (statement, values) =>
      statement.text.includes('delete from acme_challenges')
        ? Promise.reject(new Error('the database is away'))
        : db.run(statement, values),
  }
  const { directory, asked } = await startRefusingCa()
  const deps = { db: away, clock: systemClock, secrets, directory, contact: undefined }
  const ordering = obtainCertificate(name, 'http-01', deps, new AbortController().signal)
  await expect(ordering).rejects.toMatchObject({ message: 'too many requests', askedMs: 7_200_000 })
  expect(asked.filter((path) => path === '/order/1')).toHaveLength(1)
})

test('a certificate is kept although the database is away for a moment', async () => {
  const db = await openDb()
  const toMs = systemClock.nowMs() + 80 * 86_400_000
  const issued = makeAuthority().issue({ names: [name], toMs })
  ready.obtained = { cert: String(issued.cert), key: String(issued.key), fromMs: systemClock.nowMs(), toMs }
  onTestFinished(() => void (ready.obtained = undefined))
  let failures = 0
  const run: Db['run'] = (statement, values) => {
    if (!values?.includes(String(issued.cert)) || failures >= 3) return db.run(statement, values)
    failures++
    return Promise.reject(new Error('the database is away'))
  }
  const loop = await startObtaining({
    db: { ...db, run },
    // Pauses take no time.
    clock: { ...systemClock, after: (_delayMs, action) => systemClock.after(0, action) },
    log: silentLog,
    ids: openIds(systemRandom),
    secrets,
    directory: 'http://127.0.0.1:9/dir',
    contact: undefined,
    own: [name],
    listVerifiedNames: async () => [],
    listTrackNames: async () => [],
    challenges: ['http-01'],
  })
  onTestFinished(() => loop.stop())
  await expect.poll(async () => (await listCertificates(db))[0]?.expiresAt?.getTime()).toBe(toMs)
  expect(failures).toBe(3)
})
