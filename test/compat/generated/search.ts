/**
 * Sends generated requests of one vendor to a running service, several at once, and compares the answers with the database: no 500, every
 * refusal in the vendor's form, and exactly the promised messages are stored.
 */
import fc from 'fast-check'
import { type Db, sql } from '#db'
import type { GeneratedAnswer, GeneratedRequest, GeneratedVendor, Keys } from './generated-vendor.ts'

/** Messages of a tenant; the recipients of a message share its content. */
const countMessages = sql<{ messages: number }>`
  select count(distinct content_id)::integer as messages
  from emails
  where tenant_id = $1`

const atOnce = 8
/** After so many requests the database is compared, and the next seed begins. */
const inBatch = 500

export interface Searched {
  baseUrl: string
  db: Db
  /** The tenant of the keys; only this search sends for it. */
  tenantId: string
  keys: Keys
}

export interface Found {
  refused: number
  accepted: number
  messages: number
}

/** Throws at the first wrong answer or count, with the request. */
export async function searchVendor(vendor: GeneratedVendor, on: Searched, count: number, firstSeed: number): Promise<Found> {
  const found = { refused: 0, accepted: 0, messages: 0 }
  for (let done = 0; done < count; done += inBatch) {
    const seed = firstSeed + done / inBatch
    const requests = fc.sample(vendor.requests, { numRuns: Math.min(inBatch, count - done), seed })
    const before = await storedMessages(on)
    const promised = await sendAll(vendor, requests, on, found)
    const stored = (await storedMessages(on)) - before
    if (stored !== promised) throw new Error(await culprit(vendor, requests, on, `seed ${seed}: ${promised} promised, ${stored} stored`))
    found.messages += stored
  }
  return found
}

async function storedMessages({ db, tenantId }: Searched): Promise<number> {
  return (await db.first(countMessages, [tenantId]))?.messages ?? 0
}

/** Returns the number of promised messages. */
async function sendAll(vendor: GeneratedVendor, requests: readonly GeneratedRequest[], on: Searched, found: Found): Promise<number> {
  const waiting = requests.values()
  let promised = 0
  const send = async () => {
    for (const request of waiting) {
      const messages = await judged(vendor, request, on)
      if (messages === undefined) found.refused++
      else found.accepted++
      promised += messages ?? 0
    }
  }
  await Promise.all(Array.from({ length: atOnce }, send))
  return promised
}

/** The number of messages that the answer promises; undefined: the request was refused. */
async function judged(vendor: GeneratedVendor, request: GeneratedRequest, on: Searched): Promise<number | undefined> {
  const url = on.baseUrl + request.path
  const { method, body } = request
  const headers = { ...request.headers, ...vendor.authenticate(request, url, on.keys) }
  const response = await fetch(url, { method, headers, ...(body === undefined || body === '' ? {} : { body }) })
  const answer: GeneratedAnswer = { status: response.status, headers: response.headers, text: await response.text() }
  try {
    if (answer.status >= 500) throw new Error('a fault')
    return vendor.isRefused(answer, request) ? undefined : vendor.messagesOf(answer, request)
  } catch (error) {
    throw new Error(`${String(error)}: ${shown(request)}\n${answer.status} ${answer.text.slice(0, 2000)}`)
  }
}

/** Sends the requests again, one after the other, and names the first that stores another number of messages than it promises. */
async function culprit(vendor: GeneratedVendor, requests: readonly GeneratedRequest[], on: Searched, wrong: string): Promise<string> {
  for (const request of requests) {
    const before = await storedMessages(on)
    const promised = (await judged(vendor, request, on)) ?? 0
    const stored = (await storedMessages(on)) - before
    if (stored !== promised) return `${wrong}; ${promised} promised and ${stored} stored by ${shown(request)}`
  }
  return `${wrong}; each of these requests alone is right`
}

function shown({ method, path, body }: GeneratedRequest): string {
  const text = typeof body === 'string' ? body : JSON.stringify([...(body ?? [])])
  return `${method} ${path}\n${text.slice(0, 4000)}`
}
