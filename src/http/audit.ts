/**
 * Changes under /v1 in the audit log. What keys do with mail is in the list of emails and in the request log, and is not repeated here; what
 * people do is, whatever it is.
 */
import type { FastifyRequest } from 'fastify'
import type { Clock, Log } from '#base'
import type { Db } from '#db'
import { noteAct } from '#members'
import type { Endpoint } from './v1/route.ts'

const ofMail = /^(?:emails|test)\./
const parsedLength = 16_384

type Data = Record<string, unknown>

/** After a change that succeeded; whatever goes wrong with the note is no matter of the caller's. */
export async function noteChange(
  request: FastifyRequest,
  { method, name: act, body: schema }: Endpoint,
  answer: unknown,
  { db, clock, log }: { db: Db; clock: Clock; log: Log },
): Promise<void> {
  const { admission, params } = request
  if (method === 'GET' || !admission) return
  const { credential } = admission
  const isPerson = 'role' in credential
  if (!isPerson && ofMail.test(act)) return
  // What the endpoint does not know was not checked either: as text that nothing can store, it would leave no entry.
  const known = Object.keys((schema as { properties?: object } | undefined)?.properties ?? {})
  const body = Object.fromEntries(Object.entries((request.body ?? {}) as Data).filter(([name]) => known.includes(name)))
  const made = madeIn(answer)
  const { tenantId: inPath, address: _, ...ids } = params as Data
  const named = admission.tenantId ?? inPath ?? made.tenantId ?? body.tenantId
  const entry = {
    actor: { kind: isPerson ? ('member' as const) : ('key' as const), name: credential.name },
    act,
    tenantId: typeof named === 'string' ? named : null,
    requestId: request.id,
    ipAddress: request.ip,
    // No values: a body may hold addresses of recipients, which can be erased elsewhere.
    data: { ...ids, ...textOf('id', made.id), ...textOf('name', made.name ?? body.name), fields: Object.keys(body) },
  }
  await noteAct(db, entry, clock.nowMs()).catch((error: unknown) =>
    log.error({ requestId: request.id, err: error }, 'a change could not be noted in the audit log'),
  )
}

const textOf = (name: string, value: unknown): Data =>
  typeof value === 'string' || typeof value === 'number' ? { [name]: String(value).slice(0, 200) } : {}

function madeIn(answer: unknown): Data {
  if (typeof answer !== 'string' || answer.length > parsedLength) return {}
  const { data } = JSON.parse(answer) as { data?: unknown }
  return typeof data === 'object' && data !== null && !Array.isArray(data) ? (data as Data) : {}
}
