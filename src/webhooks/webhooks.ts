/**
 * Webhooks: subscriptions to events, signed requests, and a record of each. One kind of record, shown as a tenant's or as the
 * organisation's. Sending processes share the webhooks by lease and follow the event log.
 * Owns: webhooks, webhook_endpoints, webhook_positions, webhook_retries, webhook_processes, webhook_deliveries, delivery_erasures,
 * webhook_signing_keys.
 * Uses: base, dkim, net, bounces, db, tenants, events, emails, spool, received-mail. Used by: privacy, housekeeping, installation, doctor, resend,
 * sendgrid, postmark, mailgun, imports, http, cli, main.
 * Promises: every event is sent at least once, under one id for each webhook, and the events of one email in order; no receiver delays
 * another; requests go only to allowed addresses; secrets and keys are sealed in the database; every request but a test is recorded.
 */
import type { Tx } from '#db'
import { noteDeliveriesOf } from './deleted-tenants.ts'
import { dropWebhooksOf, sealedSecretsOfWebhooks } from './manage-webhooks.ts'
import { sealedKeysOfWebhooks } from './signing-keys.ts'

export { deleteRemovedDeliveries } from './deleted-tenants.ts'
export {
  countDeliveriesLeft,
  deliveryTables,
  eraseFromDeliveries,
  type NewDelivery,
  recordDeliveries,
  removeDeliveriesOf,
  removeOldDeliveries,
  type WebhookDeliveryDetails,
} from './delivery-records.ts'
export { type EventStream, openEventStream, parsePosition, positionText, type StreamEvent, type StreamStep } from './event-stream.ts'
export { openForward } from './forward-to-listener.ts'
export { countDeliveriesWithAddresses, hashAddressesOfDeliveries } from './hash-addresses.ts'
export { measureFailing } from './log-positions.ts'
export { isMailgunKey, mailgunEventOf, mailgunEvents, mailgunMessageKey, mailgunTagKey } from './mailgun-format.ts'
export {
  allEventNames,
  disabledReasons,
  organisationWide,
  type Webhook,
  type WebhookEvent,
  webhookEvents,
  webhookFormats,
} from './manage-webhooks.ts'
export type { ShownDelivery } from './next-attempts.ts'
export {
  type Bodies,
  openPayloadBodies,
  type PreparedBody,
  parseEventNames,
  type WebhookEmailEvent,
  webhookEmailEvents,
} from './payload.ts'
export {
  postmarkBounceKind,
  postmarkMetadataOf,
  postmarkReason,
  postmarkStreamKey,
  postmarkStreamOf,
  unsentPostmarkKind,
  usualPostmarkStream,
} from './postmark-facts.ts'
export { postmarkTriggers } from './postmark-format.ts'
export { recentDeliveries } from './recent-deliveries.ts'
export { samplePayload, webhookBody } from './request-body.ts'
export { resendTypes } from './resend-format.ts'
export { type Sending, startSending } from './sender-process.ts'
export { isSendGridKey, sendgridCategoryKey, sendgridEvents, sendgridRequestKey } from './sendgrid-format.ts'
export { sendgridPublicKey } from './sendgrid-signature.ts'
export { rotateInstallationKey } from './signing-keys.ts'
export { deregisterSender } from './webhook-leases.ts'
export { openWebhooks, type Replayed, type Shown, type TestResult, type Webhooks } from './webhook-service.ts'

export const sealedOfWebhooks = [sealedSecretsOfWebhooks, sealedKeysOfWebhooks]

/** Deletes a tenant's webhooks; the caller deletes the tenant, and housekeeping the records of its events until `nowMs`. */
export async function removeWebhooksOfTenant(tx: Tx, tenantId: string, nowMs: number): Promise<void> {
  await noteDeliveriesOf(tx, tenantId, nowMs)
  await dropWebhooksOf(tx, tenantId)
}
