/**
 * POST /emails/check: judges a message before it is sent; an extra of Postrider. It neither sends nor stores the message, and uses no network
 * unless the caller asks for the links to be requested.
 */

import Type from 'typebox'
import { checkSubmission } from '#accept'
import { Refusal } from '#base'
import { linksOf, parseSender } from '#mail'
import { type CheckedLink, checkMessage, findingOfLinks, maxCheckedLinks, type SenderFacts, type Severity } from '#message-checks'
import { nullable, tenantFields, tenantNamedIn } from './common-schemas.ts'
import { type ApiDeps, route } from './define-endpoint.ts'
import { FromField, messageFields } from './send-emails.ts'

const { subject, html, text, replyTo, headers, attachments, unsubscribe } = messageFields

const Severities = Type.Unsafe<Severity>({ type: 'string', enum: ['ok', 'advice', 'problem'] })

const LinkObject = Type.Object({
  url: Type.String(),
  state: Type.Unsafe<CheckedLink['state']>({
    type: 'string',
    enum: ['works', 'refuses', 'broken', 'unchecked'],
    description: 'refuses: the server needs a login or refuses programs; unchecked: no request was sent',
  }),
  statusCode: nullable(Type.Integer({ description: 'null: no HTTP response' })),
  message: Type.String(),
})

export const checkEmail = route({
  method: 'POST',
  path: '/emails/check',
  name: 'emails.check',
  summary: 'Check a message without sending it',
  permission: 'emails:send',
  scope: 'organisation or tenant',
  families: 'organisation',
  bodyLimit: 16_777_216,
  body: Type.Object({
    from: FromField,
    subject,
    html,
    text,
    replyTo,
    headers,
    attachments,
    unsubscribe,
    links: Type.Optional(
      Type.Boolean({ description: `true: the first ${maxCheckedLinks} links are requested (HEAD, then GET), within 25 seconds` }),
    ),
    ...tenantFields,
  }),
  refuses: ['invalid_email_format', 'tenant_mismatch', 'not_found'],
  data: Type.Object({
    problems: Type.Integer({ minimum: 0 }),
    findings: Type.Array(
      Type.Object({
        check: Type.String({ description: 'Such as size, links or alignment' }),
        severity: Severities,
        message: Type.String(),
        suggestion: nullable(Type.String({ description: 'null: nothing to do' })),
      }),
    ),
    links: Type.Optional(Type.Array(LinkObject, { description: 'Present if the links were requested' })),
  }),
  handle: async (call, deps) => {
    const { body } = call
    const sender = senderIn(body.from)
    // With a recipient of any kind: the message must be one that could be sent. Other fields of the body were not validated.
    const { from, subject, html, text, replyTo, headers, attachments, unsubscribe } = body
    checkSubmission({ from, subject, html, text, replyTo, headers, attachments, unsubscribe, to: [sender.address.text] })
    const tenantId = (await tenantNamedIn(call, deps.tenants)) ?? (await deps.tenants.default()).id
    const message = {
      from: sender.address.text,
      subject: body.subject,
      html: body.html ?? undefined,
      text: body.text ?? undefined,
      headers: body.headers ?? {},
      replyTo: body.replyTo ?? undefined,
      unsubscribe: body.unsubscribe ?? false,
      attachmentOctets: (body.attachments ?? []).reduce((sum, { content }) => sum + Math.floor((content.length * 3) / 4), 0),
    }
    const links = body.links ? await deps.linkChecks.check(tenantId, linksOf(message)) : undefined
    const findings = [
      ...checkMessage(message, await senderFactsOf(tenantId, sender.address.domain, deps)),
      ...(links ? [findingOfLinks(links)] : []),
    ]
    return { problems: findings.filter(({ severity }) => severity === 'problem').length, findings, ...(links ? { links } : {}) }
  },
})

function senderIn(from: string) {
  const sender = parseSender(from)
  if (sender) return sender
  throw new Refusal('invalid_email_format', {
    field: 'from',
    message: 'from is not exactly one email address',
    suggestion: 'Use addr or "Name" <addr>',
  })
}

const dmarcOf = { OK: 'found', Missing: 'missing', Invalid: 'invalid' } as const

/** By the last check of the domain, without a lookup. */
export async function senderFactsOf(
  tenantId: string,
  name: string,
  { domains, shownDomains }: Pick<ApiDeps, 'domains' | 'shownDomains'>,
): Promise<SenderFacts | undefined> {
  const domain = await domains.find(tenantId, name)
  if (!domain) return undefined
  const { dnsRecords } = await shownDomains.get(String(domain.id), tenantId)
  const { status } = dnsRecords.dmarc
  return {
    verified: domain.verified,
    returnPathFound: dnsRecords.returnPath.status === 'OK',
    dmarc: status === null ? 'unknown' : dmarcOf[status],
  }
}
