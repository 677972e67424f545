/**
 * Limits: requests per second of a key, emails per hour of the organisation and of a tenant or a key within it, sandbox emails per day.
 * Owns: limit_overrides, request_rates, send_limit_usage, sandbox_days. Uses: base, db, tenants. Used by: spool, accept, delivery,
 * housekeeping, imports, inbound, http, cli, main.
 * Promises: all processes together exceed neither the send limit nor the rate of a key; an email over the send limit waits and is never
 * refused, and an event reports that once an hour.
 */

export { type KeyRates, openKeyRates } from './key-request-rate.ts'
export {
  keyLimitScope,
  type LimitSettings,
  listLimits,
  listSendLimitsOfKeys,
  openLimitSettings,
  organisationLimitScope,
  removeLimitsOfKeys,
  removeLimitsOfTenant,
  type SendLimits,
  setLimits,
  tenantLimitScope,
} from './limit-overrides.ts'
export { openPresence } from './only-api-process.ts'
export { openRateLimiter, type RateLimiter, type RateVerdict } from './request-rate.ts'
export { takeSandboxSlots } from './sandbox-limit.ts'
export { readSendLimitUsage, type SendLimitUsage } from './send-limit.ts'
export { type GrantedSlots, openSlots, type Slots } from './send-limit-slots.ts'
export { addWaiting, type FreeSlots, listFullLimits, lockRoom, roomForWaiting, settleWaiting } from './waiting-emails.ts'
