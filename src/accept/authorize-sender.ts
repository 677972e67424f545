/**
 * Sender authorisation: the tenant of a submission, and the sending domain or sandbox sender of its From address.
 */
import { Refusal, type RefusalCode } from '#base'
import { maySendFrom } from '#credentials'
import type { Db } from '#db'
import { type Domain, type Domains, returnPathDomainOf } from '#domains'
import type { DkimSigning, Tracking } from '#emails'
import { takeSandboxSlots } from '#limits'
import { type Address, type Originator, parseAddress } from '#mail'
import { membersAmong } from '#members'
import { simulatorDomain } from '#simulator'
import type { Tenant, Tenants } from '#tenants'
import type { Tracks } from '#tracking'
import type { Caller } from './submission.ts'

/** The tenantId rules of spec section 2.3. */
export async function tenantFor(wanted: string | null | undefined, caller: Caller, tenants: Tenants): Promise<Tenant> {
  if (caller.tenantId !== null && wanted != null && wanted !== caller.tenantId) {
    throw new Refusal('tenant_mismatch', { field: 'tenantId', message: 'tenantId: this key belongs to another tenant' })
  }
  const id = caller.tenantId ?? wanted
  const tenant = id == null ? await tenants.default() : await tenants.find(id)
  if (!tenant) throw new Refusal('not_found', { field: 'tenantId', message: `tenantId: no such tenant: ${id}` })
  return tenant
}

export function refuseUnlessActive(tenant: Tenant): void {
  if (tenant.status === 'suspended') throw new Refusal('tenant_suspended', { message: `tenant ${tenant.id} is suspended` })
  if (tenant.status === 'archived') throw new Refusal('tenant_archived', { message: `tenant ${tenant.id} is archived` })
}

/** Refuses a sender that the key is not bound to; `place`: the field of the request that names it. */
export function refuseOtherSenders(
  address: Pick<Address, 'text' | 'domain'>,
  { allowedFrom }: Pick<Caller, 'allowedFrom'>,
  place: string,
): void {
  if (maySendFrom(allowedFrom, address)) return
  throw new Refusal('permission_denied', {
    field: place,
    message: `${place}: the key may not send from ${address.text}`,
    suggestion: 'Send from a domain or address of the key, or use another key',
  })
}

/** The sender of a stored email. */
export const storedSenderOf = ({ sender }: { sender: string }): Pick<Address, 'text' | 'domain'> => ({
  text: sender,
  domain: sender.slice(sender.lastIndexOf('@') + 1).toLowerCase(),
})

export interface Sender {
  sandbox: boolean
  /** null: test mail from the simulator's domain, for which most tenants have no keys. */
  signing: DkimSigning | null
  /** The domain of generated Message-IDs. */
  messageIdDomain: string
  /** The domain of the return path: the sending domain's own once its record was verified, otherwise the installation's. */
  returnPathDomain: string
  /** By the sending domain's track domain, if one is verified. */
  tracking: Tracking | undefined
}

export interface SenderDeps {
  domains: Domains
  tracks: Tracks
  sandboxSender: string
  hostname: string
}

/** The position of the address in the request, and its header in a raw message. */
type Place = { field: 'from' } | { field: 'rawMessage'; header: string }

export async function senderFor(
  address: Address,
  tenant: Tenant,
  caller: Caller,
  deps: SenderDeps,
  place: Place = { field: 'from' },
): Promise<Sender> {
  const { field } = place
  refuseOtherSenders(address, caller, field)
  const platform = { messageIdDomain: deps.hostname, returnPathDomain: returnPathDomainOf(deps.hostname) }
  if (address.text.toLowerCase() === deps.sandboxSender && field === 'from')
    return { sandbox: true, signing: { platform: address.domain }, tracking: undefined, ...platform }
  const domain = await deps.domains.find(tenant.id, address.domain)
  const isSimulators = address.domain === simulatorDomain
  if (isSimulators && caller.mode === 'test' && !domain?.verified)
    return { sandbox: false, signing: null, tracking: undefined, ...platform, messageIdDomain: simulatorDomain }
  if (!domain?.verified || (domain.testOnly && caller.mode !== 'test')) {
    const why =
      domain?.testOnly || isSimulators
        ? 'is reserved for test keys'
        : domain
          ? 'is not verified'
          : `is not a sending domain of tenant ${tenant.id}`
    const code: RefusalCode = field === 'from' ? 'domain_not_verified' : 'invalid_raw_message'
    throw new Refusal(code, {
      field,
      message: `${field}: ${address.domain}${'header' in place ? ` in its ${place.header} header` : ''} ${why}`,
      ...(code === 'domain_not_verified' ? { suggestion: insteadOf(caller, deps.sandboxSender) } : {}),
    })
  }
  return {
    sandbox: false,
    ...identityOf(domain, deps.hostname),
    messageIdDomain: domain.name,
    tracking: await deps.tracks.find(tenant.id, domain.id),
  }
}

/** The signature and the return path of mail by a sending domain. */
export const identityOf = (domain: Domain, hostname: string): Pick<Sender, 'signing' | 'returnPathDomain'> => ({
  signing: { domainId: domain.id, withEd25519: (domain.trusted && !domain.ownKey) || domain.dkimEd25519Status === 'OK' },
  returnPathDomain: returnPathDomainOf(domain.returnPathStatus === 'OK' ? domain.name : hostname),
})

/**
 * From names the sender. A mail program may display any of the originators as the sender, so the tenant must be allowed to send from all
 * their domains.
 */
export async function senderOf(originators: readonly Originator[], tenant: Tenant, caller: Caller, deps: SenderDeps): Promise<Sender> {
  for (const { address } of originators) refuseOtherSenders(address, caller, 'rawMessage')
  const domains = originators.map(({ address }) => address.domain)
  const distinct = originators.filter((_, index) => domains.indexOf(domains[index] as string) === index)
  const senders: Sender[] = []
  for (const { field, address } of distinct)
    senders.push(await senderFor(address, tenant, caller, deps, { field: 'rawMessage', header: field }))
  return senders[0] as Sender
}

/** A suggestion that the caller can follow at once. A sandbox sender at a host name without a dot is not an email address. */
function insteadOf(caller: Caller, sandboxSender: string): string {
  if (caller.mode === 'test') return `Send from an address at ${simulatorDomain}, or add and verify the domain`
  return parseAddress(sandboxSender)
    ? `Add and verify the domain, or send to members of the organisation from ${sandboxSender}`
    : 'Add and verify the domain'
}

/** Prepares a submission. The sandbox sender may write only to members of the organisation, ten emails a UTC day; refused ones do not count. */
export async function withinSandboxRules<T>(
  { sender, envelope }: { sender: Sender; envelope: readonly Address[] },
  { db, nowMs }: { db: Db; nowMs: number },
  prepare: () => Promise<T>,
): Promise<T> {
  if (!sender.sandbox) return prepare()
  await refuseStrangers(db, envelope)
  const prepared = await prepare()
  await takeSandboxSlots(db, envelope.length, nowMs)
  return prepared
}

async function refuseStrangers(db: Db, envelope: readonly Address[]): Promise<void> {
  const members = await membersAmong(
    db,
    envelope.map((address) => address.text),
  )
  const stranger = envelope.find((address) => !members.has(address.text.toLowerCase()))
  if (stranger) {
    throw new Refusal('sandbox_recipient_not_allowed', {
      field: 'to',
      message: `to: ${stranger.text} is not a member of the organisation: the sandbox sender cannot send to it`,
    })
  }
}
