/** Every endpoint of the API, in the order of the contract. The app registers them, the OpenAPI document lists them, the contract tests walk them. */
import { retrieveEmail } from './email-details.ts'
import { listDeliveries, listEmailsRoute, retryEmail } from './emails.ts'
import { getLimits } from './limits.ts'
import type { Endpoint } from './route.ts'
import { sendBatch, sendEmail, sendRaw } from './send.ts'
import { createSuppression, createSuppressions, deleteSuppression, listSuppressionsRoute, retrieveSuppression } from './suppressions.ts'

export const routes: readonly Endpoint[] = [
  sendEmail,
  sendBatch,
  sendRaw,
  listEmailsRoute,
  retrieveEmail,
  listDeliveries,
  retryEmail,
  createSuppression,
  listSuppressionsRoute,
  createSuppressions,
  retrieveSuppression,
  deleteSuppression,
  getLimits,
]

/** Where an endpoint is served, below /v1: its own path and, for both families, the same below a tenant. */
export const pathsOf = ({ path, families }: Pick<Endpoint, 'path' | 'families'>): string[] =>
  families === 'both' ? [path, `/tenants/{tenantId}${path}`] : [path]
