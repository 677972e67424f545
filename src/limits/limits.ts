/**
 * Limits: requests per second of a key, emails per hour of the organisation and of a tenant within it, sandbox emails per day. Owns:
 * limit_settings, request_rates, send_capacity, sandbox_days. Uses: base, db, tenants. Used by: spool, accept, delivery, housekeeping,
 * inbound, http, cli, main. Promises: all processes together exceed neither the send limit nor the rate of a key; an email over the send
 * limit waits and is never refused, and an event reports that once an hour.
 */
export { type Room, readStanding, roomForWaiting, type Standing, settleWaiting } from './capacity.ts'
export { type KeyRates, openKeyRates } from './key-rates.ts'
export { openPresence } from './presence.ts'
export { openRateLimiter, type RateLimiter, type RateVerdict } from './rate.ts'
export { takeSandboxSlots } from './sandbox.ts'
export {
  keySubject,
  type LimitSettings,
  listLimits,
  openLimitSettings,
  organisationSubject,
  removeLimitsOfTenant,
  type SendLimits,
  setLimits,
  tenantSubject,
} from './settings.ts'
export { openSlots, type Slots, type Taken } from './slots.ts'
