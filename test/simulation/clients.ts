/**
 * The clients that submit mail. Each sends a request once, repeats it under its idempotency key until it is answered, and never repeats it
 * without a key.
 */
import { createHash } from 'node:crypto'
import { Refusal } from '#base'
import type { SeededRandom } from '#crash-test'
import type { Ledger, SubmittedRequest } from './ledger.ts'
import type { Api } from './processes.ts'
import type { Doing } from './scenario.ts'
import type { Tenancy } from './seed-databases.ts'
import type { Life, Time } from './virtual-time.ts'

type Sending = Extract<Doing, { kind: 'send' }>

export interface Clients {
  send(sending: Sending): void
  /** Requests without an answer yet. */
  readonly open: number
  readonly violations: string[]
}

const againMs = 400
const credentialId = 1

export function openClients(deps: {
  chance: SeededRandom
  time: Time
  self: Life
  ledger: Ledger
  tenants: readonly Tenancy[]
  apis(): Api[]
}): Clients {
  const { chance, time, self, ledger, tenants } = deps
  const clock = time.clockOf(self)
  const violations: string[] = []
  let open = 0
  let nth = 0

  const ask = (request: SubmittedRequest, tenancy: Tenancy, over: () => void) => {
    const api = chance.pick(deps.apis())
    if (!api) {
      clock.after(againMs, () => ask(request, tenancy, over))
      return
    }
    let isOver = false
    const end = (act: () => void) => {
      if (isOver) return
      isOver = true
      act()
    }
    const noAnswer = () =>
      end(() => {
        if (request.key !== undefined) clock.after(againMs, () => ask(request, tenancy, over))
        else {
          if (request.state === 'open') request.state = 'unanswered'
          over()
        }
      })
    api.life.onEnd(noAnswer)
    const { key, recipients, canary } = request
    const fingerprint = createHash('sha256').update(canary).digest()
    const submission = {
      from: `sender@${tenancy.domain}`,
      to: recipients,
      subject: 'A message',
      text: `${canary}\n${'All is well. '.repeat(20)}`,
    }
    const render = (result: unknown) => Buffer.from(JSON.stringify(result))
    const plan = { render, ...(key === undefined ? {} : { idempotency: { key, fingerprint } }) }
    api.accept.send(tenancy.tenantId, submission, { credentialId, tenantId: null, mode: request.test ? 'test' : 'live' }, plan).then(
      ({ body }) =>
        end(() => {
          const answer = body.toString()
          if (request.state === 'acknowledged' && request.answer !== answer) violations.push(`G1: ${canary}: two answers under one key`)
          const { emails } = JSON.parse(answer) as { emails: { id: string; recipient: string }[] }
          Object.assign(request, { state: 'acknowledged', answeredMs: time.monotonicMs, answer })
          request.emails = new Map(emails.map(({ id, recipient }) => [recipient, id]))
          ledger.tell(`accepted ${canary}: ${emails.map(({ id }) => id).join(' ')}`)
          over()
        }),
      (error: unknown) => {
        if (error instanceof Refusal && error.code !== 'internal_error' && error.code !== 'idempotency_in_progress')
          violations.push(`G1: ${canary} was refused: ${error.code} ${error.message}`)
        noAnswer()
      },
    )
  }

  return {
    violations,
    get open() {
      return open
    },
    send({ tenant, recipients, hasKey, test, times }) {
      const tenancy = tenants[tenant] as Tenancy
      const canary = `canary-${(++nth).toString(36)}${chance.between(0, 36 ** 6).toString(36)}-end`
      const key = hasKey ? canary : undefined
      const request: SubmittedRequest = {
        tenantId: tenancy.tenantId,
        key,
        recipients,
        canary,
        test,
        state: 'open',
        answeredMs: 0,
        emails: new Map(),
        answer: '',
      }
      ledger.requests.push(request)
      for (let copy = 0; copy < (hasKey ? times : 1); copy++) {
        open++
        ask(request, tenancy, () => open--)
      }
    },
  }
}
