/** Made from the OpenAPI document by `npm run golden`. Do not edit. */
import { type Api, at, type Options, type SendOptions } from './api.ts'
import type {
  BatchToSend,
  Credential,
  CredentialsCreateBody,
  CredentialsListQuery,
  CredentialsUpdateBody,
  CredentialsUpdateQuery,
  Deleted,
  Domain,
  DomainsCreateBody,
  DomainsListData,
  DomainsRetrieveDmarcData,
  DomainsRetrieveDmarcQuery,
  DomainsRetrieveTlsReportsData,
  DoneMessage,
  Email,
  EmailDeliveries,
  EmailToReschedule,
  EmailToSend,
  EmailsCheckBody,
  EmailsCheckData,
  EmailsListQuery,
  EmailsRetrieveQuery,
  EmailsRetryData,
  EventsStreamQuery,
  Limits,
  ListedEmail,
  LoggedRequest,
  LogsListQuery,
  LogsRetrieveData,
  OfTenant,
  PlatformWebhooksCreateBody,
  PlatformWebhooksCreateData,
  PlatformWebhooksListDeliveriesQuery,
  PlatformWebhooksRetrieveQuery,
  PlatformWebhooksTestBody,
  PlatformWebhooksTestData,
  PlatformWebhooksUpdateBody,
  RawEmailToSend,
  ReceivedEmail,
  ReceivedListItem,
  ReceivedListQuery,
  ReceivedRetrieveData,
  ReceivedRetrieveRawData,
  ReputationRetrieveData,
  ReputationRetrieveQuery,
  Reveal,
  RoutesCreateBody,
  RoutesCreateData,
  RoutesListQuery,
  RoutesUpdateBody,
  ScheduledEmail,
  SentBatch,
  SentEmail,
  Suppression,
  SuppressionsBulkCreateBody,
  SuppressionsBulkCreateData,
  SuppressionsCreateBody,
  SuppressionsImportBody,
  SuppressionsImportData,
  SuppressionsListQuery,
  SuppressionsRetrieveData,
  TemplatesCreateBody,
  TemplatesCreateData,
  TemplatesListItem,
  TemplatesListVersionsItem,
  TemplatesPreviewBody,
  TemplatesPreviewData,
  TemplatesTestBody,
  TemplatesUpdateBody,
  Tenant,
  TenantsCreateBody,
  TenantsListQuery,
  TenantsRetrievePrivacyData,
  TenantsUpdateBody,
  TenantsUpdatePrivacyBody,
  TestAdvanceBody,
  TestAdvanceData,
  TestInboxClearData,
  TestInboxListQuery,
  TrackDomain,
  TrackingCreateBody,
  TrackingListData,
  TrackingUpdateBody,
  TrackingVerifyData,
  Transport,
  TransportRule,
  TransportsCreateBody,
  TransportsListData,
  TransportsShareBody,
  TransportsTestData,
  TransportsUpdateBody,
  UsageExportQuery,
  UsageListTenantsItem,
  UsageListTenantsQuery,
  UsageRetrieveData,
  UsageRetrieveQuery,
  UsageRetrieveTenantData,
  UsageRetrieveTenantTimeseriesData,
  UsageRetrieveTenantTimeseriesQuery,
  Webhook,
  WebhookDelivery,
  WebhooksCreateBody,
  WebhooksListData,
  WebhooksListDeliveriesQuery,
  WebhooksListQuery,
  WebhooksReplayBody,
  WebhooksReplayData,
  WebhooksReplayDeliveryData,
  WebhooksRetrieveDeliveryData,
  WebhooksRetrieveQuery,
  WebhooksTestBody,
  WebhooksTestData,
  WebhooksUpdateBody,
} from './generated-types.ts'
import type { Pages } from './pages.ts'
import type { EventStream } from './stream.ts'

/** What is the organisation's own; a tenant is named in the body or query, or not at all. */
export const organisationApi = (api: Api) => ({
  emails: {
    /** Send one email. Permission `emails:send`. */
    send(body: EmailToSend, options: SendOptions = {}): Promise<SentEmail> {
      return api.send(`/emails`, { body, options })
    },
    /** List emails, newest first. Permission `emails:read`. */
    list(query: EmailsListQuery = {}, options: Options = {}): Pages<ListedEmail> {
      return api.pages(`/emails`, query, options)
    },
    /** Send up to 100 emails. Permission `emails:send`. */
    sendBatch(body: BatchToSend, options: SendOptions = {}): Promise<SentBatch> {
      return api.send(`/emails/batch`, { body, options })
    },
    /** Send a raw message. Permission `emails:send`. */
    sendRaw(body: RawEmailToSend, options: SendOptions = {}): Promise<SentEmail> {
      return api.send(`/emails/raw`, { body, options })
    },
    /** Check a message without sending it. Permission `emails:send`. */
    check(body: EmailsCheckBody, options: Options = {}): Promise<EmailsCheckData> {
      return api.ask('POST', `/emails/check`, { body, options })
    },
    /** Get an email in detail. Permission `emails:read`. */
    retrieve(emailId: string, query: EmailsRetrieveQuery = {}, options: Options = {}): Promise<Email> {
      return api.ask('GET', `/emails/${at(emailId)}`, { query, options })
    },
    /** Reschedule a scheduled email for all its recipients, before it leaves. Permission `emails:send`. */
    reschedule(emailId: string, body: EmailToReschedule, options: Options = {}): Promise<ScheduledEmail> {
      return api.ask('PATCH', `/emails/${at(emailId)}`, { body, options })
    },
    /** List all delivery attempts of an email. Permission `emails:read`. */
    retrieveDeliveries(emailId: string, query: OfTenant = {}, options: Options = {}): Promise<EmailDeliveries> {
      return api.ask('GET', `/emails/${at(emailId)}/deliveries`, { query, options })
    },
    /** Retry an email now. Permission `emails:send`. */
    retry(emailId: string, query: OfTenant = {}, options: Options = {}): Promise<EmailsRetryData> {
      return api.ask('POST', `/emails/${at(emailId)}/retry`, { query, options })
    },
    /** Cancel a scheduled email for all its recipients, before it leaves; can be repeated. Permission `emails:send`. */
    cancel(emailId: string, query: OfTenant = {}, options: Options = {}): Promise<ScheduledEmail> {
      return api.ask('POST', `/emails/${at(emailId)}/cancel`, { query, options })
    },
    /** Send a test email as live mail, with a live key, to its recipient only. Permission `emails:send`. */
    promote(emailId: string, query: OfTenant = {}, options: SendOptions = {}): Promise<SentEmail> {
      return api.send(`/emails/${at(emailId)}/promote`, { query, options })
    },
  },
  tenants: {
    /** Create a tenant. A key with full access, at organisation level. */
    create(body: TenantsCreateBody, options: Options = {}): Promise<Tenant> {
      return api.ask('POST', `/tenants`, { body, options })
    },
    /** List tenants, newest first. A key with full access, at organisation level. */
    list(query: TenantsListQuery = {}, options: Options = {}): Pages<Tenant> {
      return api.pages(`/tenants`, query, options)
    },
    /** Get a tenant. An organisation-level key with full access, or any key of the tenant. */
    retrieve(tenantId: string, options: Options = {}): Promise<Tenant> {
      return api.ask('GET', `/tenants/${at(tenantId)}`, { options })
    },
    /** Change a tenant. A key with full access, at organisation level. */
    update(tenantId: string, body: TenantsUpdateBody, options: Options = {}): Promise<Tenant> {
      return api.ask('PATCH', `/tenants/${at(tenantId)}`, { body, options })
    },
    /** Delete a tenant and its configuration; its emails and logs are kept for their retention period. A key with full access, at organisation level. */
    delete(tenantId: string, options: Options = {}): Promise<Deleted> {
      return api.ask('DELETE', `/tenants/${at(tenantId)}`, { options })
    },
    /** Get the retention that a tenant has of its own. A key with full access, at organisation level. */
    retrievePrivacy(tenantId: string, options: Options = {}): Promise<TenantsRetrievePrivacyData> {
      return api.ask('GET', `/tenants/${at(tenantId)}/privacy`, { options })
    },
    /** Change the retention that a tenant has of its own. A key with full access, at organisation level. */
    updatePrivacy(tenantId: string, body: TenantsUpdatePrivacyBody, options: Options = {}): Promise<TenantsRetrievePrivacyData> {
      return api.ask('PATCH', `/tenants/${at(tenantId)}/privacy`, { body, options })
    },
  },
  platformWebhooks: {
    /** Create a webhook for the events of all tenants. Permission `webhooks:manage`, at organisation level. */
    create(body: PlatformWebhooksCreateBody, options: Options = {}): Promise<PlatformWebhooksCreateData> {
      return api.ask('POST', `/platform/webhooks`, { body, options })
    },
    /** List the webhooks for the events of all tenants. Permission `webhooks:manage`, at organisation level. */
    list(options: Options = {}): Promise<({
      id: string
      uuid: string
      name: string
      url: string
      /** Empty: all events */
      events: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning')[]
      allEvents: boolean
      enabled: boolean
      /** null: enabled, or disabled before this field existed */
      disabledAt: string | null
      /** `endpoint_gone`: the endpoint returned 410; `requested`: disabled through the API or in the dashboard */
      disabledReason: 'endpoint_gone' | 'requested' | null
      timeoutSeconds: number
      /** null: not failing, or disabled */
      failingSince: string | null
      /** `postal`: bodies and signatures as Postal sends them; `ses`: bodies as Amazon SES publishes them; otherwise absent */
      format?: 'postrider' | 'postal' | 'ses'
      createdAt: string
      updatedAt: string
      /** `whsec_` and base64: the key for webhook-signature */
      secret?: string
    })[]> {
      return api.ask('GET', `/platform/webhooks`, { options })
    },
    /** Get a webhook for the events of all tenants. Permission `webhooks:manage`, at organisation level. */
    retrieve(webhookId: string, query: PlatformWebhooksRetrieveQuery = {}, options: Options = {}): Promise<PlatformWebhooksCreateData> {
      return api.ask('GET', `/platform/webhooks/${at(webhookId)}`, { query, options })
    },
    /** Change a webhook for the events of all tenants. Permission `webhooks:manage`, at organisation level. */
    update(webhookId: string, body: PlatformWebhooksUpdateBody, options: Options = {}): Promise<PlatformWebhooksCreateData> {
      return api.ask('PATCH', `/platform/webhooks/${at(webhookId)}`, { body, options })
    },
    /** Delete a webhook for the events of all tenants. Permission `webhooks:manage`, at organisation level. */
    delete(webhookId: string, options: Options = {}): Promise<DoneMessage> {
      return api.ask('DELETE', `/platform/webhooks/${at(webhookId)}`, { options })
    },
    /** Send one sample request now, marked `_test`. Permission `webhooks:manage`, at organisation level. */
    test(webhookId: string, body: PlatformWebhooksTestBody, options: Options = {}): Promise<PlatformWebhooksTestData> {
      return api.ask('POST', `/platform/webhooks/${at(webhookId)}/test`, { body, options })
    },
    /** List the requests to the organisation's webhooks, newest first. Permission `webhooks:manage`, at organisation level. */
    listDeliveries(query: PlatformWebhooksListDeliveriesQuery = {}, options: Options = {}): Pages<WebhookDelivery> {
      return api.pages(`/platform/webhooks/deliveries`, query, options)
    },
    /** Get a request to one of the organisation's webhooks. Permission `webhooks:manage`, at organisation level. */
    retrieveDelivery(deliveryId: string, options: Options = {}): Promise<WebhooksRetrieveDeliveryData> {
      return api.ask('GET', `/platform/webhooks/deliveries/${at(deliveryId)}`, { options })
    },
    /** Send the same payload again, once, now. Permission `webhooks:manage`, at organisation level. */
    replayDelivery(deliveryId: string, options: Options = {}): Promise<WebhooksReplayDeliveryData> {
      return api.ask('POST', `/platform/webhooks/deliveries/${at(deliveryId)}/replay`, { options })
    },
  },
  usage: {
    /** Get usage and limits of the organisation. Permission `emails:read`, at organisation level. */
    retrieve(query: UsageRetrieveQuery = {}, options: Options = {}): Promise<UsageRetrieveData> {
      return api.ask('GET', `/usage`, { query, options })
    },
    /** List the usage of each tenant. Permission `emails:read`, at organisation level. */
    listTenants(query: UsageListTenantsQuery = {}, options: Options = {}): Pages<UsageListTenantsItem> {
      return api.pages(`/usage/tenants`, query, options)
    },
    /** Export the usage of each tenant as a file, one row each, ordered by name. Permission `emails:read`, at organisation level. */
    export(query: UsageExportQuery = {}, options: Options = {}): Promise<string> {
      return api.text(`/usage/export`, query, options)
    },
    /** Get the usage of a tenant. Permission `emails:read`. */
    retrieveTenant(tenantId: string, query: UsageRetrieveQuery = {}, options: Options = {}): Promise<UsageRetrieveTenantData> {
      return api.ask('GET', `/tenants/${at(tenantId)}/usage`, { query, options })
    },
    /** Get the usage of a tenant over time. Permission `emails:read`. */
    retrieveTenantTimeseries(tenantId: string, query: UsageRetrieveTenantTimeseriesQuery = {}, options: Options = {}): Promise<UsageRetrieveTenantTimeseriesData> {
      return api.ask('GET', `/tenants/${at(tenantId)}/usage/timeseries`, { query, options })
    },
  },
  limits: {
    /** Get the rate limit and the send limit. Any valid key. */
    retrieve(options: Options = {}): Promise<Limits> {
      return api.ask('GET', `/limits`, { options })
    },
  },
  events: {
    /** Stream events as they happen (server-sent events). Permission `emails:read`. */
    stream(query: EventsStreamQuery = {}, options: Options = {}): EventStream {
      return api.stream(`/events/stream`, query, options)
    },
  },
  test: {
    /** Move a tenant's test clock forward; returns when all events due by then have happened. Permission `emails:send`. */
    advance(body: TestAdvanceBody, options: Options = {}): Promise<TestAdvanceData> {
      return api.ask('POST', `/test/advance`, { body, options })
    },
    inbox: {
      /** List received test mail, newest first; can wait for new mail. Permission `emails:read`. */
      list(query: TestInboxListQuery = {}, options: Options = {}): Pages<ReceivedEmail> {
        return api.pages(`/test/inbox`, query, options)
      },
      /** Clear the inbox; the emails stay in the list of emails. Permission `emails:read`. */
      clear(query: OfTenant = {}, options: Options = {}): Promise<TestInboxClearData> {
        return api.ask('DELETE', `/test/inbox`, { query, options })
      },
      /** Delete one email from the inbox; it stays in the list of emails. Permission `emails:read`. */
      delete(emailId: string, query: OfTenant = {}, options: Options = {}): Promise<TestInboxClearData> {
        return api.ask('DELETE', `/test/inbox/${at(emailId)}`, { query, options })
      },
    },
  },
  logs: {
    /** List API requests, newest first. A key with full access. */
    list(query: LogsListQuery = {}, options: Options = {}): Pages<LoggedRequest> {
      return api.pages(`/logs`, query, options)
    },
    /** Get an API request, with its bodies. A key with full access. */
    retrieve(requestId: string, options: Options = {}): Promise<LogsRetrieveData> {
      return api.ask('GET', `/logs/${at(requestId)}`, { options })
    },
  },
  transports: {
    /** Add an SMTP relay for a share of the mail. A key with full access, at organisation level. */
    create(body: TransportsCreateBody, options: Options = {}): Promise<Transport> {
      return api.ask('POST', `/transports`, { body, options })
    },
    /** List the transports, their state, and the shares of each rule. A key with full access, at organisation level. */
    list(options: Options = {}): Promise<TransportsListData> {
      return api.ask('GET', `/transports`, { options })
    },
    /** Get a transport. A key with full access, at organisation level. */
    retrieve(transportName: string, options: Options = {}): Promise<Transport> {
      return api.ask('GET', `/transports/${at(transportName)}`, { options })
    },
    /** Change the settings of a transport. A key with full access, at organisation level. */
    update(transportName: string, body: TransportsUpdateBody, options: Options = {}): Promise<Transport> {
      return api.ask('PATCH', `/transports/${at(transportName)}`, { body, options })
    },
    /** Remove a transport that has no share. A key with full access, at organisation level. */
    delete(transportName: string, options: Options = {}): Promise<DoneMessage> {
      return api.ask('DELETE', `/transports/${at(transportName)}`, { options })
    },
    /** Set the share of a transport in percent, of all mail or of a part; the default has the rest. A key with full access, at organisation level. */
    share(transportName: string, body: TransportsShareBody, options: Options = {}): Promise<TransportRule> {
      return api.ask('POST', `/transports/${at(transportName)}/share`, { body, options })
    },
    /** Connect to a transport and log in, without sending mail. A key with full access, at organisation level. */
    test(transportName: string, options: Options = {}): Promise<TransportsTestData> {
      return api.ask('POST', `/transports/${at(transportName)}/test`, { options })
    },
  },
})

/** What exists for the organisation and, below `/tenants/…`, for each tenant. */
export const sharedApi = (api: Api, under: string) => ({
  credentials: {
    /** Create an API key, an SMTP login or a key that signs requests. A key with full access, at organisation level unless the path names its tenant. */
    create(body: CredentialsCreateBody, options: Options = {}): Promise<Credential> {
      return api.ask('POST', `${under}/credentials`, { body, options })
    },
    /** List a tenant's credentials, or the organisation-level ones, newest first. A key with full access, at organisation level unless the path names its tenant. */
    list(query: CredentialsListQuery = {}, options: Options = {}): Pages<Credential> {
      return api.pages(`${under}/credentials`, query, options)
    },
    /** Get a credential. A key with full access, at organisation level unless the path names its tenant. */
    retrieve(credentialId: string | number, query: Reveal = {}, options: Options = {}): Promise<Credential> {
      return api.ask('GET', `${under}/credentials/${at(credentialId)}`, { query, options })
    },
    /** Rename a credential, hold it, or change its permissions and bounds. A key with full access, at organisation level unless the path names its tenant. */
    update(credentialId: string | number, body: CredentialsUpdateBody, query: CredentialsUpdateQuery = {}, options: Options = {}): Promise<Credential> {
      return api.ask('PATCH', `${under}/credentials/${at(credentialId)}`, { body, query, options })
    },
    /** Revoke a credential. A key with full access, at organisation level unless the path names its tenant. */
    delete(credentialId: string | number, query: OfTenant = {}, options: Options = {}): Promise<Deleted> {
      return api.ask('DELETE', `${under}/credentials/${at(credentialId)}`, { query, options })
    },
  },
  domains: {
    /** Add a sending domain. Permission `domains:manage`. */
    create(body: DomainsCreateBody, options: Options = {}): Promise<Domain> {
      return api.ask('POST', `${under}/domains`, { body, options })
    },
    /** List sending domains. Permission `domains:manage`. */
    list(query: OfTenant = {}, options: Options = {}): Promise<DomainsListData> {
      return api.ask('GET', `${under}/domains`, { query, options })
    },
    /** Get a sending domain, with the DNS records to publish. Permission `domains:manage`. */
    retrieve(domainId: string | number, query: OfTenant = {}, options: Options = {}): Promise<Domain> {
      return api.ask('GET', `${under}/domains/${at(domainId)}`, { query, options })
    },
    /** Delete a sending domain; its queued emails fail. Permission `domains:manage`. */
    delete(domainId: string | number, query: OfTenant = {}, options: Options = {}): Promise<DoneMessage> {
      return api.ask('DELETE', `${under}/domains/${at(domainId)}`, { query, options })
    },
    /** Check the DNS records of a sending domain now. Permission `domains:manage`. */
    verify(domainId: string | number, query: OfTenant = {}, options: Options = {}): Promise<Domain> {
      return api.ask('POST', `${under}/domains/${at(domainId)}/verify`, { query, options })
    },
    /** Get the DMARC reports about a sending domain: sources, alignment, advice. Permission `domains:manage`. */
    retrieveDmarc(domainId: string | number, query: DomainsRetrieveDmarcQuery = {}, options: Options = {}): Promise<DomainsRetrieveDmarcData> {
      return api.ask('GET', `${under}/domains/${at(domainId)}/dmarc`, { query, options })
    },
    /** Get the TLS reports about mail to a sending domain. Permission `domains:manage`. */
    retrieveTlsReports(domainId: string | number, query: DomainsRetrieveDmarcQuery = {}, options: Options = {}): Promise<DomainsRetrieveTlsReportsData> {
      return api.ask('GET', `${under}/domains/${at(domainId)}/tls-reports`, { query, options })
    },
  },
  tracking: {
    /** Create a track domain below a sending domain. Permission `domains:manage`. */
    create(body: TrackingCreateBody, options: Options = {}): Promise<TrackDomain> {
      return api.ask('POST', `${under}/tracking`, { body, options })
    },
    /** List track domains. Permission `domains:manage`. */
    list(query: OfTenant = {}, options: Options = {}): Promise<TrackingListData> {
      return api.ask('GET', `${under}/tracking`, { query, options })
    },
    /** Get a track domain. Permission `domains:manage`. */
    retrieve(trackingId: string, query: OfTenant = {}, options: Options = {}): Promise<TrackDomain> {
      return api.ask('GET', `${under}/tracking/${at(trackingId)}`, { query, options })
    },
    /** Change the settings of a track domain. Permission `domains:manage`. */
    update(trackingId: string, body: TrackingUpdateBody, options: Options = {}): Promise<TrackDomain> {
      return api.ask('PATCH', `${under}/tracking/${at(trackingId)}`, { body, options })
    },
    /** Delete a track domain. Permission `domains:manage`. */
    delete(trackingId: string, query: OfTenant = {}, options: Options = {}): Promise<DoneMessage> {
      return api.ask('DELETE', `${under}/tracking/${at(trackingId)}`, { query, options })
    },
    /** Check the CNAME record of a track domain now. Permission `domains:manage`. */
    verify(trackingId: string, query: OfTenant = {}, options: Options = {}): Promise<TrackingVerifyData> {
      return api.ask('POST', `${under}/tracking/${at(trackingId)}/verify`, { query, options })
    },
  },
  suppressions: {
    /** Suppress an address, or change its reason. Permission `suppressions:manage`. */
    create(body: SuppressionsCreateBody, options: Options = {}): Promise<Suppression> {
      return api.ask('POST', `${under}/suppressions`, { body, options })
    },
    /** List suppressed addresses, newest first. Permission `suppressions:manage`. */
    list(query: SuppressionsListQuery = {}, options: Options = {}): Pages<Suppression> {
      return api.pages(`${under}/suppressions`, query, options)
    },
    /** Suppress up to 1000 addresses. Permission `suppressions:manage`. */
    bulkCreate(body: SuppressionsBulkCreateBody, options: Options = {}): Promise<SuppressionsBulkCreateData> {
      return api.ask('POST', `${under}/suppressions/bulk`, { body, options })
    },
    /** Add up to 1000 suppressions of another service with their times; listed addresses stay as they are. Permission `suppressions:manage`. */
    import(body: SuppressionsImportBody, options: Options = {}): Promise<SuppressionsImportData> {
      return api.ask('POST', `${under}/suppressions/import`, { body, options })
    },
    /** Check whether an address is suppressed. Permission `suppressions:manage`. */
    retrieve(email: string, query: OfTenant = {}, options: Options = {}): Promise<SuppressionsRetrieveData> {
      return api.ask('GET', `${under}/suppressions/${at(email)}`, { query, options })
    },
    /** Remove an address from the list. Permission `suppressions:manage`. */
    delete(email: string, query: OfTenant = {}, options: Options = {}): Promise<DoneMessage> {
      return api.ask('DELETE', `${under}/suppressions/${at(email)}`, { query, options })
    },
  },
  webhooks: {
    /** Create a webhook. Permission `webhooks:manage`. */
    create(body: WebhooksCreateBody, options: Options = {}): Promise<Webhook> {
      return api.ask('POST', `${under}/webhooks`, { body, options })
    },
    /** List webhooks. Permission `webhooks:manage`. */
    list(query: WebhooksListQuery = {}, options: Options = {}): Promise<WebhooksListData> {
      return api.ask('GET', `${under}/webhooks`, { query, options })
    },
    /** Get a webhook. Permission `webhooks:manage`. */
    retrieve(webhookId: string, query: WebhooksRetrieveQuery = {}, options: Options = {}): Promise<Webhook> {
      return api.ask('GET', `${under}/webhooks/${at(webhookId)}`, { query, options })
    },
    /** Change a webhook. Permission `webhooks:manage`. */
    update(webhookId: string, body: WebhooksUpdateBody, options: Options = {}): Promise<Webhook> {
      return api.ask('PATCH', `${under}/webhooks/${at(webhookId)}`, { body, options })
    },
    /** Delete a webhook. Permission `webhooks:manage`. */
    delete(webhookId: string, query: OfTenant = {}, options: Options = {}): Promise<DoneMessage> {
      return api.ask('DELETE', `${under}/webhooks/${at(webhookId)}`, { query, options })
    },
    /** Send one sample request now. Permission `webhooks:manage`. */
    test(webhookId: string, body: WebhooksTestBody, options: Options = {}): Promise<WebhooksTestData> {
      return api.ask('POST', `${under}/webhooks/${at(webhookId)}/test`, { body, options })
    },
    /** List the requests to a webhook, newest first. Permission `webhooks:manage`. */
    listDeliveries(webhookId: string, query: WebhooksListDeliveriesQuery = {}, options: Options = {}): Pages<WebhookDelivery> {
      return api.pages(`${under}/webhooks/${at(webhookId)}/deliveries`, query, options)
    },
    /** Get a request to a webhook, with its response. Permission `webhooks:manage`. */
    retrieveDelivery(webhookId: string, deliveryId: string, query: OfTenant = {}, options: Options = {}): Promise<WebhooksRetrieveDeliveryData> {
      return api.ask('GET', `${under}/webhooks/${at(webhookId)}/deliveries/${at(deliveryId)}`, { query, options })
    },
    /** Send the same payload again, once, now. Permission `webhooks:manage`. */
    replayDelivery(webhookId: string, deliveryId: string, query: OfTenant = {}, options: Options = {}): Promise<WebhooksReplayDeliveryData> {
      return api.ask('POST', `${under}/webhooks/${at(webhookId)}/deliveries/${at(deliveryId)}/replay`, { query, options })
    },
    /** Send the events of a period again. Permission `webhooks:manage`. */
    replay(webhookId: string, body: WebhooksReplayBody, options: Options = {}): Promise<WebhooksReplayData> {
      return api.ask('POST', `${under}/webhooks/${at(webhookId)}/replay`, { body, options })
    },
  },
  reputation: {
    /** Get the reputation of the mail: outcomes by domain, source or provider, blocklists, and changes since yesterday. Permission `emails:read`. */
    retrieve(query: ReputationRetrieveQuery = {}, options: Options = {}): Promise<ReputationRetrieveData> {
      return api.ask('GET', `${under}/reputation`, { query, options })
    },
  },
  routes: {
    /** Receive mail for an address of a verified domain. A key with full access. */
    create(body: RoutesCreateBody, options: Options = {}): Promise<RoutesCreateData> {
      return api.ask('POST', `${under}/routes`, { body, options })
    },
    /** List a tenant's routes by domain and address. Permission `emails:read`. */
    list(query: RoutesListQuery = {}, options: Options = {}): Pages<RoutesCreateData> {
      return api.pages(`${under}/routes`, query, options)
    },
    /** Get a route. Permission `emails:read`. */
    retrieve(routeId: string, query: OfTenant = {}, options: Options = {}): Promise<RoutesCreateData> {
      return api.ask('GET', `${under}/routes/${at(routeId)}`, { query, options })
    },
    /** Change where a route forwards mail, or disable it. A key with full access. */
    update(routeId: string, body: RoutesUpdateBody, query: OfTenant = {}, options: Options = {}): Promise<RoutesCreateData> {
      return api.ask('PATCH', `${under}/routes/${at(routeId)}`, { body, query, options })
    },
    /** Delete a route; messages that it received stay until their retention ends. A key with full access. */
    delete(routeId: string, query: OfTenant = {}, options: Options = {}): Promise<Deleted> {
      return api.ask('DELETE', `${under}/routes/${at(routeId)}`, { query, options })
    },
  },
  received: {
    /** List the messages that routes received, newest first; total counts at most 1,000 after the page. Permission `emails:read`. */
    list(query: ReceivedListQuery = {}, options: Options = {}): Pages<ReceivedListItem> {
      return api.pages(`${under}/received`, query, options)
    },
    /** Get a received message with its parts. Permission `emails:read`. */
    retrieve(receivedId: string, query: OfTenant = {}, options: Options = {}): Promise<ReceivedRetrieveData> {
      return api.ask('GET', `${under}/received/${at(receivedId)}`, { query, options })
    },
    /** Get a received message as it arrived. Permission `emails:read`. */
    retrieveRaw(receivedId: string, query: OfTenant = {}, options: Options = {}): Promise<ReceivedRetrieveRawData> {
      return api.ask('GET', `${under}/received/${at(receivedId)}/raw`, { query, options })
    },
  },
  templates: {
    /** Create a template with a draft. A key with full access. */
    create(body: TemplatesCreateBody, options: Options = {}): Promise<TemplatesCreateData> {
      return api.ask('POST', `${under}/templates`, { body, options })
    },
    /** List a tenant's templates by name, without their texts. Permission `emails:send`. */
    list(query: RoutesListQuery = {}, options: Options = {}): Pages<TemplatesListItem> {
      return api.pages(`${under}/templates`, query, options)
    },
    /** Get a template with its draft. Permission `emails:send`. */
    retrieve(templateId: string, query: OfTenant = {}, options: Options = {}): Promise<TemplatesCreateData> {
      return api.ask('GET', `${under}/templates/${at(templateId)}`, { query, options })
    },
    /** Change the draft of a template; sends use the published version until the draft is published. A key with full access. */
    update(templateId: string, body: TemplatesUpdateBody, query: OfTenant = {}, options: Options = {}): Promise<TemplatesCreateData> {
      return api.ask('PATCH', `${under}/templates/${at(templateId)}`, { body, query, options })
    },
    /** Delete a template with its versions. A key with full access. */
    delete(templateId: string, query: OfTenant = {}, options: Options = {}): Promise<Deleted> {
      return api.ask('DELETE', `${under}/templates/${at(templateId)}`, { query, options })
    },
    /** Publish the draft of a template as its next version. A key with full access. */
    publish(templateId: string, query: OfTenant = {}, options: Options = {}): Promise<TemplatesCreateData> {
      return api.ask('POST', `${under}/templates/${at(templateId)}/publish`, { query, options })
    },
    /** List the published versions of a template, newest first. Permission `emails:send`. */
    listVersions(templateId: string, query: RoutesListQuery = {}, options: Options = {}): Pages<TemplatesListVersionsItem> {
      return api.pages(`${under}/templates/${at(templateId)}/versions`, query, options)
    },
    /** Render the draft of a template, or a version, without sending it. Permission `emails:send`. */
    preview(templateId: string, body: TemplatesPreviewBody, query: OfTenant = {}, options: Options = {}): Promise<TemplatesPreviewData> {
      return api.ask('POST', `${under}/templates/${at(templateId)}/preview`, { body, query, options })
    },
    /** Send one email with the draft of a template, or a version. Permission `emails:send`. */
    test(templateId: string, body: TemplatesTestBody, options: SendOptions = {}): Promise<SentEmail> {
      return api.send(`${under}/templates/${at(templateId)}/test`, { body, options })
    },
  },
})
