/**
 * Endpoints of the email pages beyond /v1 (docs/dashboard.md): marks of listed emails; SMTP transcripts, the request that sent an email, its
 * webhook requests and complaint; and release or cancellation while it is queued.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { Refusal } from '#base'
import type { Db } from '#db'
import { cancelQueue, releaseQueue } from '#delivery'
import { type Email, findEmail, lastAttempts, listAttempts } from '#emails'
import { findSendingLog } from '#request-logs'
import { findComplaints } from '#returns'
import { findSuppressingEntry } from '#suppressions'
import { findReaderMarks } from '#tracking'
import type { Webhooks } from '#webhooks'
import { type DashboardContext, maxBodyOctets } from './dashboard-context.ts'
import type { OperationDeps } from './dashboard-operations.ts'
import type { EmailMarksResponse, EmailMoreResponse } from './dashboard-responses.ts'
import { refuseBeyondRole, type SignedInMember } from './dashboard-session.ts'
import { knownEmailId } from './v1/common-schemas.ts'
import { query, queryReader } from './v1/query-parameters.ts'

const maxWebhookRequests = 50
const maxMarked = 100
/** A tenant's id and an email's id, with a dot between them. */
const maxNameLength = 100
const readMarked = queryReader(query({ emails: Type.String({ maxLength: maxMarked * maxNameLength }) }))

export function serveEmailPage(
  api: FastifyInstance,
  context: DashboardContext,
  { db, clock, webhooks }: Pick<OperationDeps, 'db' | 'clock'> & { webhooks: Webhooks },
): void {
  const { requireMember, answer } = context
  const emailOf = async (request: FastifyRequest, member: SignedInMember): Promise<Email> => {
    const { emailId } = request.params as { emailId: string }
    const email = await findEmail(db, knownEmailId(emailId), member.tenantId)
    if (!email) throw new Refusal('not_found', { message: 'no such email' })
    return email
  }

  serveMarks(api, context, db)

  api.get('/emails/:emailId/more', async (request, reply) => {
    const member = await requireMember(request)
    const email = await emailOf(request, member)
    const [attempts, complaints, sent, deliveries, suppression] = await Promise.all([
      listAttempts(db, email),
      findComplaints(db, [{ tenantId: email.tenantId, emailId: email.id }]),
      findSendingLog(db, [email.contentId, email.id], email.acceptedAt),
      webhooks.deliveriesOfEmail(email.id, member.tenantId, maxWebhookRequests),
      findSuppressingEntry(db, { tenantId: email.tenantId, address: email.recipient }),
    ])
    const maySeeRequest = sent && (member.tenantId === null || sent.tenantId === member.tenantId)
    return answer<EmailMoreResponse>(request, reply, {
      complainedAt: complaints.get(email.id) ?? null,
      isSuppressed: suppression !== undefined,
      unsubscribedAt: suppression?.emailId === email.id && suppression.reason === 'unsubscribe' ? suppression.createdAt : null,
      attempts: attempts.map(({ id, durationMs, conversation }) => ({ id: String(id), durationMs, conversation })),
      request: maySeeRequest
        ? { ...sent, timestamp: sent.at, credential: { id: String(sent.credentialId), keyPrefix: sent.keyPrefix } }
        : null,
      webhooks: deliveries.map(({ at, webhookId, ...one }) => ({ ...one, webhookId: String(webhookId), timestamp: at })),
    })
  })

  /** `past`: the participle of the path, for the refusal. */
  const change = (path: string, past: string, act: typeof releaseQueue) =>
    api.post(`/emails/:emailId/${path}`, { bodyLimit: maxBodyOctets }, async (request, reply) => {
      const member = await requireMember(request)
      refuseBeyondRole(member, request)
      const email = await emailOf(request, member)
      const emails = await act(db, { emailId: email.id, tenantId: email.tenantId }, clock.nowMs(), member.name)
      if (emails === 0)
        throw new Refusal('email_not_retryable', {
          message: `the email cannot be ${past}: its status is ${(await emailOf(request, member)).status}`,
          suggestion: 'Reload the email; an email in flight can be changed after its attempt',
        })
      await context.recordAction(db, request, member, `emails.${path}`, { emailId: email.id, emails }, email.tenantId)
      return answer<object>(request, reply, { emails })
    })
  change('release', 'released', releaseQueue)
  change('cancel', 'cancelled', cancelQueue)
}

/** The marks of listed emails. */
function serveMarks(api: FastifyInstance, { requireMember, answer }: DashboardContext, db: Db): void {
  api.get('/email-marks', async (request, reply) => {
    const member = await requireMember(request)
    const named = readMarked(request.query as Record<string, unknown>).emails.split(',')
    if (named.length > maxMarked)
      throw new Refusal('validation_error', { field: 'emails', message: `emails has more than ${maxMarked} entries` })
    const emails = named.map((name) => {
      const [tenantId = '', emailId = ''] = name.split('.')
      return { tenantId, emailId: knownEmailId(emailId) }
    })
    if (member.tenantId !== null && emails.some(({ tenantId }) => tenantId !== member.tenantId)) throw new Refusal('tenant_mismatch')
    const [marks, complaints, attempts] = await Promise.all([
      findReaderMarks(db, emails),
      findComplaints(db, emails),
      lastAttempts(db, emails),
    ])
    const marksOf = (emailId: string) => {
      const { openedAt = null, clickedAt = null } = marks.get(emailId) ?? {}
      const last = attempts.get(emailId)
      return {
        openedAt,
        clickedAt,
        complainedAt: complaints.get(emailId) ?? null,
        last: last ? { status: last.status, at: last.at } : null,
      }
    }
    return answer<EmailMarksResponse>(request, reply, {
      marks: Object.fromEntries(emails.map(({ emailId }) => [emailId, marksOf(emailId)])),
    })
  })
}
