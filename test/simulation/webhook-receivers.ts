/** The receivers of webhooks. They record the requests, fail now and then, and are unreachable at times. */
import type { SeededRandom } from '#crash-test'
import type { Post, PostOutcome } from '#net'
import type { Ledger } from './ledger.ts'
import type { World } from './mail-servers.ts'
import type { Life, Time } from './virtual-time.ts'

export interface Receivers {
  postOf: (life: Life) => Post
  /** Requests in progress. */
  readonly open: number
  /** Wall-clock time of the next retry after a failure; Infinity if there was no recent failure. */
  readonly nextDueMs: number
}

const retryWithinMs = 1_800_000

interface Body {
  event: string
  uuid: string
  tenant_id: string
  payload: { message?: { token: string }; original_message?: { token: string } }
}

export function openReceivers(deps: { chance: SeededRandom; time: Time; self: Life; ledger: Ledger; world: World }): Receivers {
  const { chance, time, self, ledger, world } = deps
  const clock = time.clockOf(self)
  let open = 0
  let nextDueMs = Infinity
  const outcome = (statusCode: number | null): PostOutcome => ({
    statusCode,
    body: '',
    durationMs: 1,
    error: statusCode === null ? 'the connection broke (simulated)' : null,
    mayHaveArrived: true,
    retryAfter: null,
  })
  return {
    get open() {
      return open
    },
    get nextDueMs() {
      return nextDueMs
    },
    postOf: (life) => ({
      look: async () => ({ kind: 'unknown', message: 'not looked for' }),
      get: async () => Promise.reject(new Error('nothing is fetched')),
      close() {},
      post: ({ url, headers, body }) =>
        new Promise<PostOutcome>((resolve) => {
          open++
          let isOver = false
          const close = () => {
            if (!isOver) open--
            isOver = true
          }
          life.onEnd(close)
          const end = (statusCode: number | null) => {
            if (isOver) return
            close()
            if (statusCode !== 200) nextDueMs = time.wallMs + retryWithinMs
            life.hear(() => resolve(outcome(statusCode)))
          }
          clock.after(chance.between(1, 30), () => {
            if (life.isOver) return
            const fails = !world.healed && chance.random() < 0.05
            const { event, uuid, tenant_id: tenantId, payload } = JSON.parse(body.toString()) as Body
            const emailId = payload.message?.token ?? payload.original_message?.token ?? ''
            const attempt = Number(headers['X-Webhook-Attempt'])
            ledger.heard.push({ webhook: url, eventId: uuid, tenantId, kind: event, emailId, attempt, isTaken: !fails })
            end(fails ? (chance.random() < 0.5 ? 503 : null) : 200)
          })
        }),
    }),
  }
}
