/**
 * Tokens of plans. A token permits one action with exactly these arguments to one key, for a short time. The installation's secret signs
 * it, so it needs no row until it is used; the audit log has the id of each used plan.
 */
import { timingSafeEqual } from 'node:crypto'
import { type Ids, Refusal, type Secrets } from '#base'

/** The action that a token is bound to. */
export interface PlannedAction {
  tool: string
  arguments: Readonly<Record<string, unknown>>
  credentialId: number
}

const purpose = 'plan of an agent'
const idLength = 20
const tokenForm = /^([0-9A-Za-z]{20})\.([0-9a-z]{1,11})\.([\w-]{43})$/

const signedText = ({ tool, arguments: given, credentialId }: PlannedAction, id: string, expiresAtMs: number) =>
  JSON.stringify([tool, Object.entries(given).sort(([one], [other]) => (one < other ? -1 : 1)), credentialId, id, expiresAtMs])

export interface PlanTokens {
  make(action: PlannedAction, nowMs: number): { token: string; expiresAt: string }
  /** The id of the token's plan; refuses `validation_error` unless the token is valid for this action at this time. */
  check(action: PlannedAction, token: string, nowMs: number): string
}

export function openPlanTokens({ ids, secrets, lifeMs }: { ids: Pick<Ids, 'token'>; secrets: Secrets; lifeMs: number }): PlanTokens {
  return {
    make(action, nowMs) {
      const id = ids.token(idLength)
      const expiresAtMs = nowMs + lifeMs
      const mac = secrets.mac(purpose, signedText(action, id, expiresAtMs))
      return { token: `${id}.${expiresAtMs.toString(36)}.${mac.toString('base64url')}`, expiresAt: new Date(expiresAtMs).toISOString() }
    },
    check(action, token, nowMs) {
      const [, id, expiry, mac] = tokenForm.exec(token) ?? []
      if (id === undefined || expiry === undefined || mac === undefined) throw wrongToken('is not a token of a plan')
      const expiresAtMs = Number.parseInt(expiry, 36)
      const given = Buffer.from(mac, 'base64url')
      // Other spellings of the same octets and number are no tokens either.
      const isExact = given.toString('base64url') === mac && expiresAtMs.toString(36) === expiry
      const fits = isExact && secrets.macs(purpose, signedText(action, id, expiresAtMs)).some((one) => timingSafeEqual(one, given))
      if (!fits) throw wrongToken('belongs to another action, other arguments or another key, or was altered')
      if (expiresAtMs <= nowMs) throw wrongToken('has expired')
      return id
    },
  }
}

export const wrongToken = (problem: string) =>
  new Refusal('validation_error', {
    field: 'token',
    message: `token ${problem}`,
    suggestion: 'Call the tool without token for a new plan, and show the plan to the person who asked',
  })
