/**
 * Forwards mail from outside for the postmaster to the operator: the unchanged octets, with the null reverse-path (so that no bounce can
 * reach a forged sender) and without Postrider's signature, because it is not Postrider's message.
 */
import { type Ids, Refusal } from '#base'
import { encodeContent } from '#emails'
import { parseAddress, readRaw } from '#mail'
import type { Tenant } from '#tenants'
import { type Prepared, storableSubject } from './submission-rows.ts'

export function prepareForward(
  octets: Buffer,
  to: string,
  { tenant, hostname, nowMs, ids }: { tenant: Tenant; hostname: string; nowMs: number; ids: Ids },
): Prepared {
  const recipient = parseAddress(to)
  if (!recipient) throw new Refusal('invalid_email_format', { message: `POSTRIDER_POSTMASTER is not an email address: ${to}` })
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
      returnPathDomain: null,
      signing: null,
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
