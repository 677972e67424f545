/** A scenario in the real engine: the same file gives the same history, and retries on the test clock get past greylisting. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startService } from '../support/in-process-service.ts'

const page = await readFile(new URL('../../docs/testing-your-email.md', import.meta.url), 'utf8')
const documented = /^```json\n([\s\S]*?)^```$/m.exec(page)?.[1] as string

const dayMs = 86_400_000

interface Attempt {
  status: string
  output: string
}

/** The outcomes of thirty emails within two days of the page's scenario, without times. */
async function history(): Promise<Record<string, { status: string; attempts: string[] }>> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-scenario-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'scenario.json')
  await writeFile(file, documented)
  const settings = { POSTRIDER_SIMULATOR_SCENARIO: file }
  await using service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'], settings })
  const call = async (method: string, path: string, body?: object) => {
    const answer = await service.call(method, path, { key: service.testKey, body })
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.body.data
  }
  const people = ['greylisting', 'slow', 'moody', 'rough', 'other'].flatMap((host) =>
    Array.from({ length: 6 }, (_, n) => `p${n}@${host}.example`),
  )
  const sent: [string, string][] = []
  for (const to of people) {
    const { id } = (await call('POST', '/emails', { from: 'a@simulator.test', to: [to], subject: 's', text: 't' })) as { id: string }
    sent.push([to, id])
  }
  const untilMs = Date.now() + 2 * dayMs
  for (let nowMs = Date.now(); nowMs < untilMs; ) {
    const seconds = Math.ceil((untilMs - nowMs) / 1000)
    nowMs = Date.parse(((await call('POST', '/test/advance', { seconds })) as { now: string }).now)
  }
  const told: Record<string, { status: string; attempts: string[] }> = {}
  for (const [to, id] of sent) {
    const { status, deliveries } = (await call('GET', `/emails/${id}?expand=deliveries`)) as { status: string; deliveries: Attempt[] }
    told[to] = { status, attempts: deliveries.map((one) => `${one.status} ${one.output}`) }
  }
  return told
}

test('the scenario of the page gives the same history twice', { timeout: 90_000 }, async () => {
  const [first, second] = [await history(), await history()]
  expect(JSON.stringify(second)).toBe(JSON.stringify(first))
  const of = (host: string) =>
    Object.entries(first)
      .filter(([to]) => to.endsWith(`@${host}.example`))
      .map(([, told]) => told)
  for (const { status, attempts } of of('moody'))
    expect([status, ...attempts.map((one) => one.split(' ')[0])]).toEqual(['sent', 'softfail', 'softfail', 'sent'])
  for (const { status, attempts } of of('greylisting')) {
    expect(status).toBe('sent')
    expect(attempts.length).toBeGreaterThan(1)
  }
  for (const host of ['slow', 'other']) for (const { status, attempts } of of(host)) expect([status, attempts.length]).toEqual(['sent', 1])
  expect(new Set(of('rough').map((one) => one.status)).size).toBeGreaterThan(1)
})

test('a scenario that cannot be read stops the start, with the place of its fault', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-scenario-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'scenario.json')
  await writeFile(file, '{"seed":1,"hosts":{"a.example":{"replies":[]}}}')
  await expect(startService({ roles: ['delivery'], settings: { POSTRIDER_SIMULATOR_SCENARIO: file } })).rejects.toThrow(
    'hosts.a.example.replies',
  )
})
