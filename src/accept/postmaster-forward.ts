/**
 * Forwards mail from outside: the unchanged octets. For the postmaster, with the null reverse-path (so that no bounce can reach a forged
 * sender) and without Postrider's signature, because it is not Postrider's message. For a route, as an email of its tenant: with a return
 * path of its own, so that a bounce ends here, and the signature of the route's domain.
 */
import { type Ids, Refusal } from '#base'
import { type Content, encodeContent } from '#emails'
import { parseAddress, readRaw } from '#mail'
import type { Tenant } from '#tenants'
import { type Prepared, storableSubject } from './submission-rows.ts'

interface ForwardFacts {
  tenant: Pick<Tenant, 'id'>
  hostname: string
  nowMs: number
  ids: Ids
  identity?: Pick<Content, 'returnPathDomain' | 'signing'>
}

const anonymous = { returnPathDomain: null, signing: null }

export function prepareForward(octets: Buffer, to: string, { tenant, hostname, nowMs, ids, identity = anonymous }: ForwardFacts): Prepared {
  const recipient = parseAddress(to)
  if (!recipient) throw new Refusal('invalid_email_format', { message: `the address to forward to is not an email address: ${to}` })
  const id = ids.emailId(nowMs)
  const facts = readRaw(octets)
  const read = typeof facts === 'string' ? undefined : facts
  const messageId = read?.messageId ?? `<${id}@${hostname}>`
  const sender = read?.from?.address.text ?? `postmaster@${hostname}`
  return {
    tenantId: tenant.id,
    contentId: id,
    body: encodeContent({
      message: { kind: 'raw', raw: octets.toString('base64') },
      messageId,
      acceptedAtMs: nowMs,
      ...identity,
    }),
    sizeOctets: octets.length,
    fromHeader: sender,
    sender: sender.toLowerCase(),
    subject: storableSubject(read?.subject ?? ''),
    tag: null,
    metadata: null,
    messageId,
    test: false,
    credentialId: null,
    acceptedAtMs: nowMs,
    clockOffsetMs: 0,
    scheduledAtMs: null,
    emails: [{ id, recipient }],
    accepted: {
      id,
      tenantId: tenant.id,
      messageId,
      to: [to],
      sandbox: false,
      scheduledAt: null,
      emails: [{ id, recipient: recipient.text }],
    },
  }
}
