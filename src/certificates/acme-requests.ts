/**
 * HTTP requests to the CA for acme-client, in place of its own: bounded in time and octets, without its repetitions, and with the CA's wish
 * for a pause (RFC 8555 section 6.6).
 */
import type { axios } from 'acme-client'
import type { Clock } from '#base'
import { readRetryAfter } from '#net'

/** The form of a transport of acme-client's HTTP library. */
type Transport = Extract<NonNullable<(typeof axios)['defaults']['adapter']>, (...given: never[]) => unknown>

/** The CA refuses orders at present. */
export class TooManyOrders extends Error {
  /** The wait that the CA asks for, in milliseconds. */
  readonly askedMs: number

  constructor(message: string, askedMs: number) {
    super(message)
    this.askedMs = askedMs
  }
}

const requestWithinMs = 30_000
/** A chain of certificates has a few thousand. */
const maxOctets = 262_144
/** For a refusal without Retry-After. */
const usualAskedMs = 3_600_000

/**
 * Throws `TooManyOrders`, or a plain Error with the cause of a failed request. acme-client repeats a failed look at an order: after the first
 * `TooManyOrders`, which `refused` gets, the CA is not asked again.
 */
export function openTransport(clock: Clock, refused: (error: TooManyOrders) => void): Transport {
  let refusal: TooManyOrders | undefined
  return async (config) => {
    if (refusal) throw refusal
    const url = String(config.url)
    const over = new AbortController()
    const cancel = clock.after(requestWithinMs, () => over.abort(new Error(`no response within ${requestWithinMs / 1000} s`)))
    try {
      const response = await fetch(url, {
        method: (config.method ?? 'get').toUpperCase(),
        headers: { 'content-type': String(config.headers['Content-Type'] ?? ''), 'user-agent': 'Postrider' },
        ...(config.data === undefined ? {} : { body: String(config.data) }),
        signal: over.signal,
        redirect: 'error',
      })
      const data = await textOf(response)
      const headers = Object.fromEntries(response.headers)
      if (response.status === 429 || response.status === 503) {
        const askedMs = readRetryAfter(response.headers.get('retry-after'), clock.nowMs()) ?? usualAskedMs
        throw new TooManyOrders(detailOf(data) ?? `the CA answered ${response.status}`, askedMs)
      }
      return { data, status: response.status, statusText: response.statusText, headers, config }
    } catch (error) {
      if (error instanceof TooManyOrders) {
        refusal = error
        refused(error)
        throw error
      }
      const { message, cause } = error as Error
      throw new Error(`${new URL(url).host}: ${cause instanceof Error ? cause.message || (cause as { code?: string }).code : message}`)
    } finally {
      cancel()
    }
  }
}

async function textOf({ body }: Response): Promise<string> {
  const pieces: Uint8Array[] = []
  let octets = 0
  for await (const piece of body ?? []) {
    octets += piece.length
    if (octets > maxOctets) throw new Error(`the response has more than ${maxOctets} octets`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}

/** The sentence of a problem document (RFC 7807). */
function detailOf(text: string): string | undefined {
  try {
    const { detail } = JSON.parse(text) as { detail?: unknown }
    return typeof detail === 'string' ? detail : undefined
  } catch {
    return undefined
  }
}
