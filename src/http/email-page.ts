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
import { type Desk, mostBodyOctets } from './desk.ts'
import type { OperationDeps } from './operation.ts'
import { type Person, refuseBeyondRole } from './session.ts'
import { knownEmailId } from './v1/wire.ts'

const mostWebhookRequests = 50

export function serveEmailPage(
  api: FastifyInstance,
  desk: Desk,
  { db, clock, webhooks }: Pick<OperationDeps, 'db' | 'clock'> & { webhooks: Webhooks },
): void {
  const { asPerson, answer } = desk
  const emailOf = async (request: FastifyRequest, person: Person): Promise<Email> => {
    const { emailId } = request.params as { emailId: string }
    const email = await findEmail(db, knownEmailId(emailId), person.tenantId)
    if (!email) throw new Refusal('not_found', { message: 'there is no such email' })
    return email
  }

  api.get('/emails/:emailId/more', async (request, reply) => {
    const person = await asPerson(request)
    const email = await emailOf(request, person)
    const [attempts, sent, told] = await Promise.all([
      listAttempts(db, email),
      findSendingLog(db, [email.contentId, email.id], email.acceptedAt),
      webhooks.deliveriesOfEmail(email.id, person.tenantId, mostWebhookRequests),
    ])
    const maySeeRequest = sent && (person.tenantId === null || sent.tenantId === person.tenantId)
    return answer(request, reply, {
      attempts: attempts.map(({ id, durationMs, conversation }) => ({ id: String(id), durationMs, conversation })),
      request: maySeeRequest
        ? { ...sent, timestamp: sent.at, credential: { id: String(sent.credentialId), keyPrefix: sent.keyPrefix } }
        : null,
      webhooks: told.map(({ at, webhookId, ...one }) => ({ ...one, webhookId: String(webhookId), timestamp: at })),
    })
  })

  const change = (path: string, act: typeof releaseQueue) =>
    api.post(`/emails/:emailId/${path}`, { bodyLimit: mostBodyOctets }, async (request, reply) => {
      const person = await asPerson(request)
      refuseBeyondRole(person, request)
      const email = await emailOf(request, person)
      const emails = await act(db, { emailId: email.id, tenantId: email.tenantId }, clock.nowMs(), person.name)
      await desk.note(db, request, person, `emails.${path}`, { emailId: email.id, emails }, email.tenantId)
      return answer(request, reply, { emails })
    })
  change('release', releaseQueue)
  change('cancel', cancelQueue)
}
