/** The data that is left of a tenant's mail: counts and times, from the tables themselves. */
import { Refusal } from '#base'
import { type Db, inSnapshot, type Queryable, searchInSnapshot, type Tx } from '#db'
import { countAddressesLeft, countEmailsLeft, countRecordsLeft } from '#emails'
import { countEventsLeft, countEventsWithAddresses } from '#events'
import { countReceivedLeft } from '#received-mail'
import { countBodiesLeft, countCallsWithAddresses, countEntriesLeft } from '#request-logs'
import { countQueuedContents } from '#spool'
import { getTenant } from '#tenants'
import { countHitsLeft, countHitsWithAddresses } from '#tracking'
import { countDeliveriesLeft, countDeliveriesWithAddresses } from '#webhooks'
import { getHashDays } from './address-retention.ts'
import { getContentDays } from './manage-retention.ts'
import { getRecordDays } from './record-retention.ts'

interface Left {
  rows: number
  /** null: no row. */
  oldest: Date | null
}

export interface PrivacyReport {
  tenantId: string
  at: Date
  /** Days; 0: until the email is final. */
  contentDays: number
  /** Contents that a queued email needs, and of test mail, may be older. */
  contents: Left & { ofQueuedEmails: number; ofTestMail: number }
  /** `erased`: without the recipient's address. */
  emails: Left & { erased: number }
  attempts: Left
  /** Days; null: as the installation. */
  recordDays: number | null
  /** Emails whose record is not reduced to id, times and status. `notFinal`: those that therefore may be older than the retention. */
  records: Left & { notFinal: number }
  /** Calls in the request log. `ofNoTenant`: as below. */
  requests: Left & { ofNoTenant: Left }
  /** Calls in the request log whose bodies are left. `ofNoTenant`: of calls for no single tenant, any of which may concern this one. */
  requestBodies: Left & { ofNoTenant: Left }
  /** In the event log. */
  events: Left
  opensAndClicks: Left
  webhookDeliveries: Left
  receivedMessages: Left
  /** Days; null: addresses are not hashed. */
  hashAddressesAfterDays: number | null
  /** Rows with an address that is not hashed. */
  addresses: {
    /** Of recipients. `hashed`: those that are. */
    emails: Left & { hashed: number }
    attempts: Left
    events: Left
    opensAndClicks: Left
    webhookDeliveries: Left
    /** In paths and errors. `ofNoTenant`: of calls for no single tenant. */
    requests: Left & { ofNoTenant: Left }
  }
}

interface Facts {
  nowMs: number
  keepContentDays: number
  /** For one of about twenty statements; absent: unlimited. */
  statementMs?: number
}

/** All counts are of one moment. Refuses `not_found`, and `validation_error` if a statement takes longer than `statementMs`. */
export function reportPrivacy(db: Db, tenantId: string, { statementMs, ...facts }: Facts): Promise<PrivacyReport> {
  const count = (tx: Tx) => countLeft(tx, tenantId, facts)
  const tooMuch = () =>
    new Refusal('validation_error', {
      message: 'the tenant has too much data to count here',
      suggestion: `Run postrider privacy report ${tenantId} on the machine of the service`,
    })
  return statementMs === undefined ? inSnapshot(db, count) : searchInSnapshot(db, tooMuch, count, { statementMs })
}

async function countLeft(tx: Tx, tenantId: string, facts: Omit<Facts, 'statementMs'>): Promise<PrivacyReport> {
  await getTenant(tx, tenantId)
  const { contents, emails, attempts } = await countEmailsLeft(tx, tenantId)
  const ofQueuedEmails = await countQueuedContents(tx, tenantId)
  const requestBodies = { ...(await countBodiesLeft(tx, tenantId)), ofNoTenant: await countBodiesLeft(tx, '') }
  const ownDays = await getContentDays(tx, tenantId)
  const hashAddressesAfterDays = await getHashDays(tx, tenantId)
  const recordDays = await getRecordDays(tx, tenantId)
  const days = [ownDays, hashAddressesAfterDays, recordDays].filter((one) => one !== null)
  return {
    tenantId,
    at: new Date(facts.nowMs),
    contentDays: Math.min(...days, facts.keepContentDays),
    contents: { ...contents, ofQueuedEmails },
    emails,
    attempts,
    recordDays,
    records: await countRecordsLeft(tx, tenantId),
    requests: { ...(await countEntriesLeft(tx, tenantId)), ofNoTenant: await countEntriesLeft(tx, '') },
    requestBodies,
    events: await countEventsLeft(tx, tenantId),
    opensAndClicks: await countHitsLeft(tx, tenantId),
    webhookDeliveries: await countDeliveriesLeft(tx, tenantId),
    receivedMessages: await countReceivedLeft(tx, tenantId),
    hashAddressesAfterDays,
    addresses: await countAddresses(tx, tenantId),
  }
}

const countAddresses = async (on: Queryable, tenantId: string): Promise<PrivacyReport['addresses']> => ({
  ...(await countAddressesLeft(on, tenantId)),
  events: await countEventsWithAddresses(on, tenantId),
  opensAndClicks: await countHitsWithAddresses(on, tenantId),
  webhookDeliveries: await countDeliveriesWithAddresses(on, tenantId),
  requests: { ...(await countCallsWithAddresses(on, tenantId)), ofNoTenant: await countCallsWithAddresses(on, '') },
})
