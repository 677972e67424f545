/**
 * Records changes under /v1 in the audit log: for keys all but mail, which the list of emails and the request log already show; for people
 * every change.
 */
import type { FastifyRequest } from 'fastify'
import type { Clock, Log } from '#base'
import type { Db } from '#db'
import { recordAction } from '#members'
import type { Endpoint } from './v1/define-endpoint.ts'

const ofMail = /^(?:emails|test)\./
/** POST without a change. */
const reads = new Set(['templates.preview'])
const parsedLength = 16_384

type Data = Record<string, unknown>

/** Called after a change that succeeded. A failure to write the entry does not affect the caller's response. */
export async function recordChange(
  request: FastifyRequest,
  { method, name: action, body: schema }: Endpoint,
  answer: unknown,
  { db, clock, log }: { db: Db; clock: Clock; log: Log },
): Promise<void> {
  const { admission, params } = request
  if (method === 'GET' || reads.has(action) || !admission) return
  const { credential } = admission
  const isPerson = 'role' in credential
  if (!isPerson && ofMail.test(action)) return
  // Unknown fields were not validated: text that PostgreSQL cannot store would lose the whole entry.
  const known = Object.keys((schema as { properties?: object } | undefined)?.properties ?? {})
  const body = Object.fromEntries(Object.entries((request.body ?? {}) as Data).filter(([name]) => known.includes(name)))
  const made = madeIn(answer)
  const { tenantId: inPath, email: _, ...ids } = params as Data
  const named = admission.tenantId ?? inPath ?? made.tenantId ?? body.tenantId
  const entry = {
    actor: { kind: isPerson ? ('member' as const) : ('key' as const), name: credential.name },
    action,
    tenantId: typeof named === 'string' ? named : null,
    requestId: request.id,
    ipAddress: request.ip,
    // Field names without values: a body may hold recipients' addresses, which can be erased elsewhere.
    data: { ...ids, ...idOf(made), ...textOf('name', made.name ?? body.name), fields: Object.keys(body) },
  }
  await recordAction(db, entry, clock.nowMs()).catch((error: unknown) =>
    log.error({ requestId: request.id, err: error }, 'failed to write an audit log entry'),
  )
}

const textOf = (name: string, value: unknown): Data =>
  typeof value === 'string' || typeof value === 'number' ? { [name]: String(value).slice(0, 200) } : {}

/** The id of a suppression at Resend is the recipient's address. */
const idOf = ({ id }: Data): Data => (typeof id === 'string' && id.includes('@') ? {} : textOf('id', id))

function madeIn(answer: unknown): Data {
  if (typeof answer !== 'string' || answer.length > parsedLength) return {}
  const { data } = JSON.parse(answer) as { data?: unknown }
  return typeof data === 'object' && data !== null && !Array.isArray(data) ? (data as Data) : {}
}
