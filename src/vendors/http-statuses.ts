/** HTTP statuses of Postrider's refusals, for vendors whose errors are a status and a message. */
import type { RefusalCode } from '#base'

/** All others are 400. */
export const usualStatuses: Readonly<Partial<Record<RefusalCode, number>>> = {
  authentication_required: 401,
  invalid_api_key: 401,
  expired_api_key: 401,
  permission_denied: 403,
  credential_on_hold: 403,
  tenant_suspended: 403,
  tenant_archived: 403,
  domain_not_verified: 403,
  sandbox_recipient_not_allowed: 403,
  sandbox_limit_exceeded: 403,
  not_found: 404,
  payload_too_large: 413,
  rate_limit_exceeded: 429,
  internal_error: 500,
}
