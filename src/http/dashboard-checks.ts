/**
 * The checks of a stored email for the dashboard: the findings of the message without any network, and its links, which are requested only
 * when a member asks. Both read the message as it was submitted, so that no tracked link is counted.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RateLimiter } from '#limits'
import { linksOf, parseSender } from '#mail'
import { checkMessage } from '#message-checks'
import { type DashboardContext, maxBodyOctets } from './dashboard-context.ts'
import type { EmailFindingsResponse, EmailLinksResponse } from './dashboard-responses.ts'
import { refuseBeyondRole, type SignedInMember } from './dashboard-session.ts'
import { connectionOf } from './v1/caller-connection.ts'
import { senderFactsOf } from './v1/check-email.ts'
import { refuseHiddenContent } from './v1/content-access.ts'
import type { ApiDeps } from './v1/define-endpoint.ts'
import { retrieveEmail } from './v1/email-details.ts'

export interface EmailChecksDeps extends ApiDeps {
  rateLimiter: RateLimiter
}

interface Stored {
  id: string
  tenantId: string
  from: string
  subject: string
  htmlBody?: string
  plainBody?: string
  headers?: Record<string, string>
}

export function serveEmailChecks(api: FastifyInstance, context: DashboardContext, deps: EmailChecksDeps): void {
  const { requireMember, answer } = context

  /** With its content, unless the retention period has passed. */
  const storedIn = async (request: FastifyRequest, reply: FastifyReply, member: SignedInMember): Promise<Stored> => {
    const { body } = await retrieveEmail.respond(
      {
        requestId: request.id,
        params: request.params,
        query: { expand: 'content,headers' },
        body: {},
        credential: member,
        tenantId: member.tenantId,
        rate: deps.rateLimiter('checks', null),
        idempotencyKey: undefined,
        accept: undefined,
        lastEventId: undefined,
        connection: connectionOf(reply.raw),
      },
      deps,
    )
    const { data } = JSON.parse(body as string) as { data: Stored }
    await refuseHiddenContent(member, data.tenantId, deps)
    return data
  }

  api.get('/emails/:emailId/findings', async (request, reply) => {
    const email = await storedIn(request, reply, await requireMember(request))
    if (!email.htmlBody && !email.plainBody) return answer<EmailFindingsResponse>(request, reply, { findings: [] })
    const headers = lowerCased(email.headers ?? {})
    const sender = parseSender(email.from)?.address
    const message = {
      from: sender?.text ?? email.from,
      subject: email.subject,
      html: email.htmlBody || undefined,
      text: email.plainBody,
      headers,
      replyTo: headers['reply-to'],
      unsubscribe: false,
      attachmentOctets: 0,
    }
    const findings = checkMessage(message, sender && (await senderFactsOf(email.tenantId, sender.domain, deps)))
    return answer<EmailFindingsResponse>(request, reply, { findings })
  })

  api.post('/emails/:emailId/check-links', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const member = await requireMember(request)
    refuseBeyondRole(member, request)
    const email = await storedIn(request, reply, member)
    const links = await deps.linkChecks.check(email.tenantId, linksOf({ html: email.htmlBody, text: email.plainBody }))
    const data = { emailId: email.id, links: links.length }
    await context.recordAction(deps.db, request, member, 'emails.check-links', data, email.tenantId)
    return answer<EmailLinksResponse>(request, reply, { links })
  })
}

const lowerCased = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
