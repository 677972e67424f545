/** Lookups of host names while the database is slow or away, and under a flood of random names. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { Db } from '#db'
import { openTrackHosts } from '#tracking'
import { startService } from '../support/in-process-service.ts'
import { handMoved, handMovedDurations } from '../support/test-clock.ts'

const keptMs = 900
const lateMs = 1000
const row = { tenantId: 'tenant', domainId: 1, isProven: true }
const track = { tenantId: 'tenant', isVerified: true, hasHttps: true }
const nameOf = (n: number) => `n${n}.example`

/** A database that answers when the test lets it; the names in `tracks` are track domains. */
function opened() {
  const clock = handMoved()
  const tracks = new Set<string>()
  const asked: string[] = []
  let waiting: (() => void)[] | undefined
  const first = async (_: unknown, [host]: string[]) => {
    asked.push(host as string)
    if (waiting) await new Promise<void>((resolve) => waiting?.push(resolve))
    return tracks.has(host as string) ? row : undefined
  }
  const db = { first, rows: async () => [{ id: row.domainId }] } as unknown as Db
  return {
    clock,
    tracks,
    asked,
    hosts: openTrackHosts({ db, clock }),
    stall: () => {
      waiting = []
    },
    answer: () => {
      const all = waiting ?? []
      waiting = undefined
      for (const one of all) one()
    },
  }
}

test('at most 50 lookups wait for the database; a further name fails at once, and a known one keeps its result', async () => {
  const { clock, tracks, asked, hosts, stall, answer } = opened()
  tracks.add('click.example')
  expect(await hosts.find('click.example')).toEqual(track)
  clock.moveMs(keptMs)
  stall()
  const finds = Array.from({ length: 50 }, (_, n) => hosts.find(nameOf(n)))
  await expect(hosts.find('further.example')).rejects.toThrow('50 lookups')
  expect(await hosts.find('click.example')).toEqual(track)
  expect(asked).toHaveLength(51)
  // A second request with a name that is being looked up shares the lookup.
  finds.push(hosts.find(nameOf(0)))
  answer()
  expect(await Promise.all(finds)).toEqual(Array(51).fill(undefined))
  expect(await hosts.find('further.example')).toBe(undefined)
})

test('a lookup that timed out counts until the database has answered it', async () => {
  const { clock, hosts, stall, answer } = opened()
  stall()
  const finds = Promise.allSettled(Array.from({ length: 50 }, (_, n) => hosts.find(nameOf(n))))
  clock.moveMs(lateMs)
  expect((await finds).every(({ status }) => status === 'rejected')).toBe(true)
  await expect(hosts.find('further.example')).rejects.toThrow('50 lookups')
  answer()
  await expect.poll(() => hosts.find('further.example').catch(String)).toBe(undefined)
})

test('a flood of unknown names evicts no track domain, whose result stays while the database is away', async () => {
  const { clock, tracks, hosts, stall } = opened()
  tracks.add('click.example')
  expect(await hosts.find('click.example')).toEqual(track)
  for (let n = 0; n < 10_000; n++) await hosts.find(nameOf(n))
  stall()
  clock.moveMs(keptMs)
  const found = hosts.find('click.example')
  clock.moveMs(lateMs)
  expect(await found).toEqual(track)
})

test('a track domain that is removed is unknown, and one that is added again is found', async () => {
  const { clock, tracks, hosts } = opened()
  const after = async () => {
    clock.moveMs(keptMs)
    return hosts.find('click.example')
  }
  tracks.add('click.example')
  expect(await after()).toEqual(track)
  tracks.clear()
  expect(await after()).toBe(undefined)
  tracks.add('click.example')
  expect(await after()).toEqual(track)
})

test('while no lookup succeeds, requests get 503, and the log has one line for all of them', async () => {
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  await using service = await startService({ log, clock: handMovedDurations() })
  lines.length = 0
  const statusOf = async (path: string) => (await fetch(`http://127.0.0.1:${service.port}${path}`)).status
  await service.db.transaction(async (tx) => {
    await tx.script('lock table track_domains in access exclusive mode')
    const statuses = await Promise.all(Array.from({ length: 60 }, (_, n) => statusOf(`/tls/ask?domain=${nameOf(n)}`)))
    expect(statuses).toEqual(Array(60).fill(503))
  })
  const [line, ...others] = lines.map((one) => JSON.parse(one) as Record<string, unknown>)
  expect(line).toMatchObject({ msg: 'requests failed because the database is unreachable', requests: 1 })
  expect(line).not.toHaveProperty('err')
  expect(others).toEqual([])
})
