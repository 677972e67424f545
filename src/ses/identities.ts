/** Sending domains as SES's identities, of which Postrider has only domains, and the account with its quotas. */
import type { DnsRecord, DomainView } from '#domains'
import { SesRefusal } from './errors.ts'
import type { XmlValue } from './query-xml.ts'

export interface Identity {
  name: string
  verified: boolean
}

const statusOf = ({ verified }: Identity) => (verified ? 'SUCCESS' : 'PENDING')
const recordStatus = ({ status }: DnsRecord) => (status === 'OK' ? 'SUCCESS' : status === null ? 'NOT_STARTED' : 'FAILED')

export const sesIdentityItem = (domain: Identity) => ({
  IdentityType: 'DOMAIN',
  IdentityName: domain.name,
  SendingEnabled: domain.verified,
  VerificationStatus: statusOf(domain),
})

/** Postrider publishes its DKIM key as a TXT record, so that there are no tokens of CNAME records. */
export function sesIdentity(domain: DomainView) {
  const { dkim, returnPath } = domain.dnsRecords
  return {
    IdentityType: 'DOMAIN',
    FeedbackForwardingStatus: false,
    VerifiedForSendingStatus: domain.verified,
    VerificationStatus: statusOf(domain),
    DkimAttributes: { SigningEnabled: true, Status: recordStatus(dkim), Tokens: [], SigningAttributesOrigin: 'EXTERNAL' },
    MailFromAttributes: {
      MailFromDomain: returnPath.name,
      MailFromDomainStatus: returnPath.status === 'OK' ? 'SUCCESS' : 'PENDING',
      BehaviorOnMxFailure: 'USE_DEFAULT_VALUE',
    },
    Policies: {},
    Tags: [],
  }
}

export const noSuchIdentity = (name: string): SesRefusal =>
  new SesRefusal('notFound', `Email identity ${name.slice(0, 253)} does not exist.`)

export interface Quota {
  /** Emails per hour; null: unlimited. */
  sendLimit: number | null
  /** Requests per second; null: unlimited. */
  rate: number | null
  sentLast24Hours: number
}

const hoursOfDay = 24
/** SES's sign of a quota without a limit. */
const unlimited = -1
/** A rate has no such sign: programs divide by it. */
const unlimitedRate = 100_000

export const sesQuota = ({ sendLimit, rate, sentLast24Hours }: Quota) => ({
  Max24HourSend: sendLimit === null ? unlimited : sendLimit * hoursOfDay,
  MaxSendRate: rate ?? unlimitedRate,
  SentLast24Hours: sentLast24Hours,
})

/** `mode`: of the key. A test key has no production access: its mail does not leave the machine. */
export const sesAccount = (quota: Quota, mode: 'live' | 'test') => ({
  DedicatedIpAutoWarmupEnabled: false,
  EnforcementStatus: 'HEALTHY',
  ProductionAccessEnabled: mode === 'live',
  SendingEnabled: true,
  SendQuota: sesQuota(quota),
  SuppressionAttributes: { SuppressedReasons: ['BOUNCE', 'COMPLAINT'] },
})

/** The answer of GetIdentityVerificationAttributes for those of `names` that are domains here. */
export const verificationAttributes = (names: readonly string[], domains: readonly Identity[]): XmlValue => {
  const byName = new Map(domains.map((one) => [one.name.toLowerCase(), one]))
  const entries = names.flatMap((name) => {
    const domain = byName.get(name.toLowerCase())
    return domain ? [{ key: name, value: { VerificationStatus: domain.verified ? 'Success' : 'Pending' } }] : []
  })
  return { VerificationAttributes: { entry: entries } }
}
