/**
 * Runs many peers that play random rows of the table at once, with much mail to each. Every email has the result of the table; no email is lost
 * or arrives twice without a reason. No process ends, and memory does not grow from the first half to the second.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { openSeededRandom } from '#crash-test'
import { sql } from '#db'
import type { Case } from './remote-world.ts'
import type { Row } from './row-type.ts'
import { batch, messageOf, read, recipientsOf, send } from './send-rows.ts'
import type { Running } from './service-under-test.ts'
import { complaints, type EmailState } from './verdict.ts'
import { mayWait, wrongAmongMany, wrongWithTaken } from './verdict-many.ts'

export interface MixedWish {
  peers: number
  messages: number
  seed: number
  /** The rows that the peers play. */
  rows: readonly Row[]
  halfWithinMs: number
  progress: (line: string) => void
}

export interface Mixed {
  seconds: number
  attempts: number
  /** Number of emails by final status. */
  ended: Record<string, number>
  /** For a correct server, from acceptance to its reply. */
  healthyMs: { messages: number; median: number; maximum: number }
  /**
   * For each delivery process and half: peak resident memory, then resident memory and memory in use after the half and a garbage
   * collection.
   */
  memoryMib: { peak: number; resident: number; used: number }[][]
  wrong: string[]
}

/** One of the messages, and its state in the API. */
interface OneOfMany {
  id: string
  /** A number in the subject that identifies the copy at the peer. */
  mark: number
  to: string
  told?: EmailState
}

const batchSize = 100
const senders = 4
const readers = 8
const lookEveryMs = 500
const healthyEveryMs = 200
/** Limit for mail to the correct server. Half of it must arrive much sooner, under any load of the machine. */
const healthyWithinMs = 15_000
const healthyMedianMs = 500
/**
 * Limits for one process: its peak, and the growth of memory in use from the end of the first half to the end of the second. The growth
 * allows for some large messages of providers in backoff. A leak of 10 KB for each message would exceed it.
 */
const maxPeakMib = 700
const maxGrownMib = 64

const unfinished = sql<{ recipientDomain: string; waiting: number; untried: number }>`
  select recipient_domain as "recipientDomain", count(*)::integer as waiting, (count(*) filter (where attempt_count = 0))::integer as untried
  from spool
  group by recipient_domain`

type ManyAtOne = Case & { emails: OneOfMany[] }

export async function runMixed(running: Running, wish: MixedWish): Promise<Mixed> {
  const { outside, deliveries } = running
  const { progress } = wish
  const beganMs = performance.now()
  const chance = openSeededRandom(wish.seed)
  await using closing = new AsyncDisposableStack()
  const cases: ManyAtOne[] = []
  const inOrder = chance.shuffled(wish.rows)
  for (let nth = 0; nth < wish.peers; nth++) {
    // Each row once if there are enough peers, then random rows.
    const row = inOrder[nth] ?? chance.pick(wish.rows)
    if (row) cases.push({ ...closing.use(await outside.add(row)), emails: [] })
  }
  const healthy = startHealthy(running)
  const memoryMib: Mixed['memoryMib'] = deliveries.map(() => [])
  let marks = 0
  for (const half of [1, 2]) {
    const peers = Array.from({ length: wish.messages / 2 }, (_, nth) => cases[nth % cases.length]).filter((one) => one !== undefined)
    for (const delivery of deliveries) await delivery.settle()
    await sendAll(running, chance.shuffled(peers), () => ++marks)
    progress(`half ${half}: ${peers.length} accepted after ${secondsSince(beganMs)} s`)
    await untilDone(running, cases, performance.now() + wish.halfWithinMs, progress)
    for (const [at, delivery] of deliveries.entries()) {
      const peak = mib(await delivery.peak())
      const { resident, used } = await delivery.settle()
      memoryMib[at]?.push({ peak, resident: mib(resident), used: mib(used) })
    }
    progress(`half ${half}: done after ${secondsSince(beganMs)} s`)
  }
  const healthyMs = await healthy.stop()
  await readAll(running, cases)
  const emails = cases.flatMap((one) => one.emails)
  return {
    seconds: secondsSince(beganMs),
    attempts: emails.reduce((sum, { told }) => sum + (told?.deliveries.length ?? 0), 0),
    ended: countBy(emails.map(({ told }) => told?.status ?? 'unknown')),
    healthyMs,
    memoryMib,
    wrong: [...cases.flatMap(wrongAtPeer), ...wrongWithMemory(memoryMib), ...wrongWithHealthy(healthyMs), ...complaints(running.log())],
  }
}

/** Reads the state of each email from the API. */
async function readAll({ call }: Running, cases: readonly ManyAtOne[]): Promise<void> {
  const left = cases.flatMap((one) => one.emails)
  const reader = async () => {
    for (let one = left.pop(); one; one = left.pop()) one.told = await read(call, one.id)
  }
  await Promise.all(Array.from({ length: readers }, reader))
}

const wrongAtPeer = ({ row, place, emails, ...peer }: ManyAtOne): string[] =>
  [...wrongAmongMany(row, emails), ...wrongWithTaken(emails, peer)].map((one) => `${place.domain} (${row.name}): ${one}`)

const wrongWithMemory = (memoryMib: Mixed['memoryMib']): string[] =>
  memoryMib.flatMap(([first, second], at) => {
    const peak = Math.max(first?.peak ?? 0, second?.peak ?? 0)
    const grown = (second?.used ?? 0) - (first?.used ?? 0)
    return [
      ...(peak > maxPeakMib ? [`delivery process ${at + 1} had ${peak} MiB resident; ${maxPeakMib} are allowed`] : []),
      ...(grown > maxGrownMib ? [`delivery process ${at + 1} grew by ${grown} MiB from half to half; ${maxGrownMib} are allowed`] : []),
    ]
  })

const wrongWithHealthy = ({ median, maximum }: Mixed['healthyMs']): string[] => [
  ...(median > healthyMedianMs ? [`a healthy server waited for its mail: half of it took ${median} ms and more`] : []),
  ...(maximum > healthyWithinMs ? [`a healthy server waited ${maximum} ms for its mail`] : []),
]

const mib = (octets: number) => Math.round(octets / 1_048_576)
const secondsSince = (ms: number) => Math.round((performance.now() - ms) / 1000)
const countBy = (names: readonly string[]) =>
  Object.fromEntries([...Map.groupBy(names, (one) => one)].map(([name, some]) => [name, some.length]))

/** Sends one email for each entry, each to its own recipient, so that no recipient is suppressed because of another email. */
async function sendAll({ call }: Running, jobs: readonly ManyAtOne[], newMark: () => number): Promise<void> {
  const made = jobs.map(({ row, place, emails }) => {
    const names = recipientsOf(row)
    const to = names[emails.length % names.length] ?? ''
    const mark = newMark()
    const email: OneOfMany = { id: '', mark, to }
    emails.push(email)
    return { email, row, address: `${to}.${mark}@${place.domain}` }
  })
  const isLarge = (row: Row) => row.message?.fileOctets !== undefined
  const large = made.filter(({ row }) => isLarge(row))
  const small = made.filter(({ row }) => !isLarge(row))
  const message = ({ row, email }: (typeof made)[number]) => ({ ...messageOf(row), subject: `mark ${email.mark}.` })
  const work: (() => Promise<void>)[] = large.map((one) => async () => {
    one.email.id = await send(call, one.address, message(one))
  })
  for (let from = 0; from < small.length; from += batchSize) {
    const some = small.slice(from, from + batchSize)
    work.push(async () => {
      const ids = await batch(
        call,
        some.map((one) => ({ to: [one.address], ...message(one) })),
      )
      for (const [at, one] of some.entries()) one.email.id = ids[at] ?? ''
    })
  }
  const sender = async () => {
    for (let next = work.shift(); next; next = work.shift()) await next()
  }
  await Promise.all(Array.from({ length: senders }, sender))
}

/** Waits until only the mail of providers in backoff is queued and each of these providers has been tried. */
async function untilDone(
  { db, deliveries }: Running,
  cases: readonly ManyAtOne[],
  untilMs: number,
  progress: (line: string) => void,
): Promise<void> {
  let toldAtMs = performance.now()
  while (performance.now() < untilMs) {
    if (deliveries.some((one) => one.hasEnded)) throw new Error('a delivery process ended')
    const waiting = new Map((await db.rows(unfinished)).map((one) => [one.recipientDomain, one]))
    const open = cases.filter(({ row, place, emails }) => {
      const here = waiting.get(place.domain)
      if (!here) return false
      return mayWait(row) ? here.untried === emails.length : true
    })
    if (open.length === 0) return
    if (performance.now() - toldAtMs > 10_000) {
      toldAtMs = performance.now()
      const emails = open.reduce((sum, { place }) => sum + (waiting.get(place.domain)?.waiting ?? 0), 0)
      const names = [...new Set(open.map(({ row }) => row.name))].slice(0, 4)
      progress(`  ${emails} emails to ${open.length} peers are under way: ${names.join('; ')}`)
    }
    await wait(lookEveryMs)
  }
}

/** Sends one message after the other, with short pauses, to a correct server. */
function startHealthy({ call, outside: { healthy } }: Running) {
  const took: number[] = []
  const ending = new AbortController()
  const run = async () => {
    while (!ending.signal.aborted) {
      await send(call, `n${took.length}@healthy.example`, { subject: 'Hello', text: 'Hello' })
      const beganMs = performance.now()
      await healthy.waitFor(took.length + 1, 4 * healthyWithinMs)
      took.push(performance.now() - beganMs)
      await wait(healthyEveryMs)
    }
  }
  const done = run()
  done.catch(() => {})
  return {
    async stop() {
      ending.abort()
      await done
      const sorted = took.toSorted((a, b) => a - b)
      return { messages: took.length, median: Math.round(sorted[sorted.length >> 1] ?? 0), maximum: Math.round(sorted.at(-1) ?? 0) }
    },
  }
}
