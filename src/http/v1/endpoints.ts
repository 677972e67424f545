/** Every endpoint of the API, in the contract's order, for the app, the OpenAPI document and the contract tests. */
import { checkEmail } from './check-email.ts'
import { createCredential, deleteCredential, listCredentialsRoute, retrieveCredential, updateCredential } from './credentials.ts'
import type { Endpoint } from './define-endpoint.ts'
import { retrieveDmarc, retrieveTlsReports } from './domain-reports.ts'
import { createDomain, deleteDomainRoute, listDomainsRoute, retrieveDomain, verifyDomain } from './domains.ts'
import { retrieveEmail } from './email-details.ts'
import { listDeliveriesEndpoint, listEmailsRoute, retryEmail } from './emails.ts'
import { streamEvents } from './event-stream.ts'
import { getLimits } from './limits.ts'
import { listLogsRoute, retrieveLog } from './logs.ts'
import {
  createPlatformWebhook,
  deletePlatformWebhook,
  listPlatformWebhooks,
  retrievePlatformWebhook,
  testPlatformWebhook,
  updatePlatformWebhook,
} from './platform-webhooks.ts'
import { retrievePrivacy, updatePrivacy } from './privacy.ts'
import { promoteEmail } from './promote.ts'
import {
  createRoute,
  deleteRoute,
  listReceivedRoute,
  listRoutes,
  retrieveReceived,
  retrieveReceivedRaw,
  retrieveRoute,
  updateRoute,
} from './received-mail.ts'
import { retrieveReputation } from './reputation.ts'
import { cancelEmail, rescheduleEmail } from './scheduled-emails.ts'
import { sendBatch, sendEmail, sendRaw } from './send-emails.ts'
import {
  createSuppression,
  createSuppressions,
  deleteSuppression,
  importSuppressionsRoute,
  listSuppressionsRoute,
  retrieveSuppression,
} from './suppressions.ts'
import {
  createTemplate,
  deleteTemplateRoute,
  listTemplatesRoute,
  listTemplateVersions,
  previewTemplate,
  publishTemplate,
  retrieveTemplate,
  testTemplate,
  updateTemplate,
} from './templates.ts'
import { createTenant, deleteTenantEndpoint, listTenantsRoute, retrieveTenant, updateTenantEndpoint } from './tenants.ts'
import { advanceTest, clearTestInbox, deleteFromTestInbox, listTestInbox } from './test-endpoints.ts'
import {
  createTrackDomain,
  deleteTrackDomain,
  listTrackDomainsRoute,
  retrieveTrackDomain,
  updateTrackDomain,
  verifyTrackDomainRoute,
} from './tracking.ts'
import {
  createTransport,
  deleteTransport,
  listTransportsRoute,
  retrieveTransport,
  shareTransportRoute,
  testTransportRoute,
  updateTransport,
} from './transports.ts'
import { exportUsage, listTenantUsage, retrieveTenantSeries, retrieveTenantUsage, retrieveUsage } from './usage.ts'
import {
  listPlatformDeliveries,
  listWebhookDeliveries,
  replayPlatformDelivery,
  replayWebhookDelivery,
  replayWebhookRange,
  retrievePlatformDelivery,
  retrieveWebhookDelivery,
} from './webhook-deliveries.ts'
import { createWebhook, deleteWebhook, listWebhooksRoute, retrieveWebhook, testWebhook, updateWebhook } from './webhooks.ts'

/** `/v1` and the path in Fastify's notation. */
export const fastifyPath = (path: string) => `/v1${path.replace(/\{(\w+)\}/g, ':$1')}`

export const routes: readonly Endpoint[] = [
  sendEmail,
  sendBatch,
  sendRaw,
  checkEmail,
  listEmailsRoute,
  retrieveEmail,
  listDeliveriesEndpoint,
  retryEmail,
  cancelEmail,
  rescheduleEmail,
  createTenant,
  listTenantsRoute,
  retrieveTenant,
  updateTenantEndpoint,
  deleteTenantEndpoint,
  retrievePrivacy,
  updatePrivacy,
  createCredential,
  listCredentialsRoute,
  retrieveCredential,
  updateCredential,
  deleteCredential,
  createDomain,
  listDomainsRoute,
  retrieveDomain,
  verifyDomain,
  deleteDomainRoute,
  retrieveDmarc,
  retrieveTlsReports,
  createTrackDomain,
  listTrackDomainsRoute,
  retrieveTrackDomain,
  updateTrackDomain,
  verifyTrackDomainRoute,
  deleteTrackDomain,
  createSuppression,
  listSuppressionsRoute,
  createSuppressions,
  importSuppressionsRoute,
  retrieveSuppression,
  deleteSuppression,
  createWebhook,
  listWebhooksRoute,
  retrieveWebhook,
  updateWebhook,
  deleteWebhook,
  testWebhook,
  listWebhookDeliveries,
  retrieveWebhookDelivery,
  replayWebhookDelivery,
  replayWebhookRange,
  createPlatformWebhook,
  listPlatformWebhooks,
  retrievePlatformWebhook,
  updatePlatformWebhook,
  deletePlatformWebhook,
  testPlatformWebhook,
  listPlatformDeliveries,
  retrievePlatformDelivery,
  replayPlatformDelivery,
  retrieveUsage,
  listTenantUsage,
  exportUsage,
  retrieveTenantUsage,
  retrieveTenantSeries,
  retrieveReputation,
  getLimits,
  streamEvents,
  promoteEmail,
  createRoute,
  listRoutes,
  retrieveRoute,
  updateRoute,
  deleteRoute,
  listReceivedRoute,
  retrieveReceived,
  retrieveReceivedRaw,
  createTemplate,
  listTemplatesRoute,
  retrieveTemplate,
  updateTemplate,
  publishTemplate,
  listTemplateVersions,
  previewTemplate,
  testTemplate,
  deleteTemplateRoute,
  advanceTest,
  listTestInbox,
  clearTestInbox,
  deleteFromTestInbox,
  listLogsRoute,
  retrieveLog,
  createTransport,
  listTransportsRoute,
  retrieveTransport,
  updateTransport,
  deleteTransport,
  shareTransportRoute,
  testTransportRoute,
]

/** The paths of an endpoint below /v1: its own, and for both families the same below a tenant. */
export const pathsOf = ({ path, families }: Pick<Endpoint, 'path' | 'families'>): string[] =>
  families === 'both' ? [path, `/tenants/{tenantId}${path}`] : [path]
