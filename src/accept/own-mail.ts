/**
 * Accepts a message that Postrider itself wrote, as an email of the default tenant: signed with the key of the platform's domain, with a
 * signed return path, and sent without regard to the TLS policy of the recipient's domain.
 */
import type { Clock, Ids } from '#base'
import { returnPathDomainOf } from '#domains'
import { encodeContent } from '#emails'
import { parseAddress } from '#mail'
import type { Tenant, Tenants } from '#tenants'
import type { Commit } from './commit.ts'
import type { Prepared } from './submission-rows.ts'

export interface OwnMessage {
  /** The complete message, with a Message-ID. */
  octets: Buffer
  messageId: string
  /** An address at a domain of the platform. */
  from: string
  to: string
  subject: string
}

export interface OwnMailDeps {
  clock: Clock
  ids: Ids
  tenants: Tenants
  commit: Commit
  hostname: string
}

/** Returns the id of the email, once it is on disk. */
export type SubmitOwn = (message: OwnMessage) => Promise<string>

export function openOwnMail({ clock, ids, tenants, commit, hostname }: OwnMailDeps): SubmitOwn {
  return async (message) => {
    const facts = { tenant: await tenants.default(), nowMs: clock.nowMs(), ids, hostname }
    const prepared = prepareOwn(message, facts)
    await commit({ submissions: [prepared], idempotency: undefined })
    return prepared.contentId
  }
}

function prepareOwn(
  { octets, messageId, from, to, subject }: OwnMessage,
  { tenant, nowMs, ids, hostname }: { tenant: Tenant; nowMs: number; ids: Ids; hostname: string },
): Prepared {
  const [recipient, sender] = [parseAddress(to), parseAddress(from)]
  if (!recipient || !sender) throw new Error(`not an email address: ${recipient ? from : to}`)
  const id = ids.emailId(nowMs)
  return {
    tenantId: tenant.id,
    contentId: id,
    body: encodeContent({
      message: { kind: 'raw', raw: octets.toString('base64') },
      messageId,
      acceptedAtMs: nowMs,
      returnPathDomain: returnPathDomainOf(hostname),
      signing: { platform: sender.domain },
    }),
    sizeOctets: octets.length,
    fromHeader: from,
    sender: sender.text.toLowerCase(),
    subject,
    tag: null,
    metadata: null,
    messageId,
    test: false,
    credentialId: null,
    acceptedAtMs: nowMs,
    clockOffsetMs: 0,
    scheduledAtMs: null,
    emails: [{ id, recipient }],
    ignoresTlsPolicies: true,
  }
}
