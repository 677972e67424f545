/** Requests to a service that limits their rate: a refused one waits as the service asks, and is repeated. */
import { type Clock, pause } from '#base'
import { type Get, readRetryAfter } from '#net'

/** All waits of one request. */
const maxWaitsMs = 120_000
/** Without Retry-After; and the least, so that waits of no time end too. */
const minWaitMs = 1000

/** The last answer stays 429 if the service asks for longer waits. */
export const patientGet =
  (get: Get, clock: Clock): Get =>
  async (request) => {
    for (let leftMs = maxWaitsMs; ; ) {
      const outcome = await get(request)
      const waitMs = Math.max(readRetryAfter(outcome.retryAfter ?? null, clock.nowMs()) ?? 0, minWaitMs)
      if (outcome.statusCode !== 429 || waitMs > leftMs) return outcome
      leftMs -= waitMs
      await pause(clock, waitMs)
    }
  }
