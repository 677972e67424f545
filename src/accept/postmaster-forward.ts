/**
 * Forwards mail from outside: the unchanged octets. For the postmaster, with the null reverse-path (so that no bounce can reach a forged
 * sender) and without Postrider's signature, because it is not Postrider's message. For a route, as emails of its tenant: with a return
 * path of their own, so that a bounce ends here, and the signature of the route's domain. Each address gets one copy of a received message.
 */
import { type Clock, derivedEmailId, emailIdTimeMs, type Ids, Refusal } from '#base'
import { type Db, isUniqueViolation } from '#db'
import { type Domain, returnPathDomainOf } from '#domains'
import { type Content, type ContentCodec, findEmail } from '#emails'
import { parseAddress, readRaw } from '#mail'
import type { Tenants } from '#tenants'
import { identityOf } from './authorize-sender.ts'
import type { Commit } from './commit.ts'
import { storableSubject } from './raw-submission.ts'
import type { Prepared } from './submission-rows.ts'

export interface Forwarder {
  /**
   * Forwards mail from outside for the postmaster to `address`, unchanged and with the null reverse-path, as an email of the default
   * tenant.
   */
  forward(octets: Buffer, address: string): Promise<void>
  /**
   * Forwards the message `received` of a route of the domain, as one email of the tenant for each address; a repetition has the same
   * result. `record` is called with the copies before they are accepted.
   */
  forwardRouted(octets: Buffer, addresses: readonly string[], by: RoutedBy): Promise<void>
}

export interface RoutedBy {
  tenantId: string
  domain: Domain
  received: string
  /** Whether the domain signs, and in whose name the return path is; `null`: the null reverse-path. */
  identity: { isSigned: boolean; returnPath: 'null' | 'domain' | 'server' }
  record: (copies: readonly { to: string; emailId: string }[]) => Promise<void>
}

interface ForwardingDeps {
  db: Db
  clock: Clock
  ids: Ids
  tenants: Pick<Tenants, 'default'>
  hostname: string
  codec: ContentCodec
  commit: Commit
}

interface Copy {
  id: string
  to: string
}

interface ForwardFacts {
  tenantId: string
  nowMs: number
  /** By default that of From. */
  sender?: string
  identity: Pick<Content, 'returnPathDomain' | 'signing'>
  keepsArc?: true
}

const anonymous = { returnPathDomain: null, signing: null }

export function openForwarding(deps: ForwardingDeps): Forwarder {
  const { db, clock, ids, tenants, hostname, commit } = deps

  const missing = async (copies: readonly Copy[], tenantId: string) => {
    const found = await Promise.all(copies.map(({ id }) => findEmail(db, id, tenantId)))
    return copies.filter((_, nth) => !found[nth])
  }

  return {
    async forward(octets, address) {
      const { id: tenantId } = await tenants.default()
      const nowMs = clock.nowMs()
      const copies = [{ id: ids.emailId(nowMs), to: address }]
      await commit({
        submissions: [await prepareCopies(octets, copies, { tenantId, nowMs, identity: anonymous }, deps)],
        idempotency: undefined,
      })
    },

    async forwardRouted(octets, addresses, { tenantId, domain, received, identity: { isSigned, returnPath }, record }) {
      // Ids derived from the received message, so that two deliveries of it at once cannot both be committed.
      const nowMs = emailIdTimeMs(received) ?? clock.nowMs()
      const copies = addresses.map((to) => ({ id: derivedEmailId(nowMs, `forwarded ${tenantId} ${received} ${to}`), to }))
      await record(copies.map(({ id, to }) => ({ to, emailId: id })))
      const identity = {
        signing: isSigned ? identityOf(domain, hostname).signing : null,
        returnPathDomain: returnPath === 'null' ? null : returnPathDomainOf(returnPath === 'domain' ? domain.name : hostname),
      }
      const facts = { tenantId, nowMs, sender: `postmaster@${domain.name}`, identity, keepsArc: true as const }
      const open = await missing(copies, tenantId)
      if (open.length === 0) return
      const prepared = await prepareCopies(octets, open, facts, deps)
      await commit({ submissions: [prepared], idempotency: undefined }).catch((error: unknown) => {
        if (!isUniqueViolation(error)) throw error
      })
      // Another delivery may have accepted some of them.
      const [absent] = await missing(open, tenantId)
      if (absent) throw new Error(`a copy was not accepted: ${absent.id}`)
    },
  }
}

/** One content for all copies. */
async function prepareCopies(
  octets: Buffer,
  copies: readonly Copy[],
  { tenantId, nowMs, sender, identity, keepsArc }: ForwardFacts,
  { hostname, codec }: ForwardingDeps,
): Promise<Prepared> {
  const emails = copies.map(({ id, to }) => {
    const recipient = parseAddress(to)
    if (!recipient) throw new Refusal('invalid_email_format', { message: `the address to forward to is not an email address: ${to}` })
    return { id, recipient }
  })
  const contentId = copies[0]?.id ?? ''
  const facts = readRaw(octets)
  const read = typeof facts === 'string' ? undefined : facts
  const messageId = read?.messageId ?? `<${contentId}@${hostname}>`
  const from = read?.from?.address.text ?? `postmaster@${hostname}`
  const message = { kind: 'raw' as const, raw: octets.toString('base64'), ...(keepsArc && { keepsArc }) }
  return {
    tenantId,
    contentId,
    body: await codec.encode({ message, messageId, acceptedAtMs: nowMs, ...identity }, { tenantId, sizeOctets: octets.length }),
    sizeOctets: octets.length,
    fromHeader: from,
    // Rules, pauses and reputation by domain are those of the domain that forwards, not of a stranger.
    sender: (sender ?? from).toLowerCase(),
    subject: storableSubject(read?.subject ?? ''),
    tag: null,
    metadata: null,
    messageId,
    test: false,
    credentialId: null,
    acceptedAtMs: nowMs,
    clockOffsetMs: 0,
    scheduledAtMs: null,
    emails,
  }
}
