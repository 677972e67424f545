/**
 * The types of responses, all of them generated or shared: of /v1 from the OpenAPI document, by way of the client; of the dashboard's own
 * endpoints from the program, which the compiler checks against them (docs/decisions/025-dashboard-types.md). This file only names their
 * parts, and lists the members of two unions for menus.
 */
import type { Credential, Domain, Email, Webhook } from '../../packages/client/src/generated-types.ts'

export type {
  Credential,
  Domain,
  DomainsListData,
  DomainsRetrieveDmarcData,
  DomainsRetrieveTlsReportsData,
  Email,
  Limits,
  ListedEmail,
  LoggedRequest,
  LogsRetrieveData,
  ReceivedEmail,
  ReceivedListItem,
  ReceivedRetrieveData,
  ReceivedRetrieveRawData,
  ReputationRetrieveData,
  RoutesCreateData,
  Suppression,
  SuppressionsBulkCreateData,
  TemplatesCreateData,
  TemplatesListItem,
  TemplatesListVersionsItem,
  Tenant,
  TenantsRetrievePrivacyData,
  TenantsUpdatePrivacyBody,
  TrackDomain,
  TrackingListData,
  Transport,
  TransportRule,
  TransportsListData,
  TransportsTestData,
  UsageListTenantsItem,
  Webhook,
  WebhookDelivery,
  WebhooksListData,
  WebhooksReplayData,
  WebhooksRetrieveDeliveryData,
  WebhooksTestData,
} from '../../packages/client/src/generated-types.ts'
export type * from '../../src/http/dashboard-responses.ts'

export type Status = Email['status']
export type Attempt = NonNullable<Email['deliveries']>[number]
/** An open; a click has a `url` too. */
export type TrackingEvent = NonNullable<Email['activity']>['opens'][number]
export type DnsRecord = Domain['dnsRecords']['spf']

/** `List`, if it has all members of `Union`; the compiler refuses another list. */
type Complete<Union, List extends readonly Union[]> = Exclude<Union, List[number]> extends never ? List : never

const everyEvent = [
  'MessageSent',
  'MessageDelayed',
  'MessageDeliveryFailed',
  'MessageBounced',
  'MessageLoaded',
  'MessageLinkClicked',
  'MessageHeld',
  'DomainDNSError',
  'ComplaintReceived',
  'RecipientUnsubscribed',
  'SuppressionAdded',
  'SuppressionRemoved',
  'MessageReceived',
  'ReputationWarning',
] as const
export const webhookEvents: Complete<Webhook['events'][number], typeof everyEvent> = everyEvent

const everyPermission = ['emails:send', 'emails:read', 'domains:manage', 'webhooks:manage', 'suppressions:manage'] as const
export const permissions: Complete<NonNullable<Credential['permissions']>[number], typeof everyPermission> = everyPermission
