/**
 * Endpoints of the email page beyond /v1 (docs/dashboard.md): SMTP transcripts, the request that sent the email, its webhook requests, and
 * release or cancellation while it is queued.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Refusal } from '#base'
import { cancelQueue, releaseQueue } from '#delivery'
import { type Email, findEmail, listAttempts } from '#emails'
import { findSendingLog } from '#request-logs'
import type { Webhooks } from '#webhooks'
import { type DashboardContext, maxBodyOctets } from './dashboard-context.ts'
import type { EmailMoreResponse } from './dashboard-responses.ts'
import { refuseBeyondRole, type SignedInMember } from './dashboard-session.ts'
import type { OperationDeps } from './queue-admin.ts'
import { knownEmailId } from './v1/common-schemas.ts'

const maxWebhookRequests = 50

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

  api.get('/emails/:emailId/more', async (request, reply) => {
    const member = await requireMember(request)
    const email = await emailOf(request, member)
    const [attempts, sent, told] = await Promise.all([
      listAttempts(db, email),
      findSendingLog(db, [email.contentId, email.id], email.acceptedAt),
      webhooks.deliveriesOfEmail(email.id, member.tenantId, maxWebhookRequests),
    ])
    const maySeeRequest = sent && (member.tenantId === null || sent.tenantId === member.tenantId)
    return answer<EmailMoreResponse>(request, reply, {
      attempts: attempts.map(({ id, durationMs, conversation }) => ({ id: String(id), durationMs, conversation })),
      request: maySeeRequest
        ? { ...sent, timestamp: sent.at, credential: { id: String(sent.credentialId), keyPrefix: sent.keyPrefix } }
        : null,
      webhooks: told.map(({ at, webhookId, ...one }) => ({ ...one, webhookId: String(webhookId), timestamp: at })),
    })
  })

  const change = (path: string, act: typeof releaseQueue) =>
    api.post(`/emails/:emailId/${path}`, { bodyLimit: maxBodyOctets }, async (request, reply) => {
      const member = await requireMember(request)
      refuseBeyondRole(member, request)
      const email = await emailOf(request, member)
      const emails = await act(db, { emailId: email.id, tenantId: email.tenantId }, clock.nowMs(), member.name)
      await context.recordAction(db, request, member, `emails.${path}`, { emailId: email.id, emails }, email.tenantId)
      return answer<object>(request, reply, { emails })
    })
  change('release', releaseQueue)
  change('cancel', cancelQueue)
}
