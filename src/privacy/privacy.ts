/**
 * Privacy of a tenant: a shorter retention of its contents, also in the request log, and of its records, hashed addresses, the roles that may
 * see contents, and a report of the data that is left.
 * Owns: tenant_retention, tenant_address_retention, tenant_record_retention, content_visibility. Uses: base, db, tenants, members, events, emails, spool, request-logs, tracking, received-mail, webhooks. Used by:
 * housekeeping, http, cli.
 * Promises: the content and the record of an email that is not final are never deleted; a round of deletions is bounded, and the next round goes on.
 */
export { AddressHashing } from './address-hashing.ts'
export { getHashDays, mayHaveHashes, setHashDays } from './address-retention.ts'
export { ContentRetention } from './content-retention.ts'
export {
  type ContentAudience,
  contentAudiences,
  getContentAudience,
  isContentHiddenFrom,
  setContentAudience,
} from './content-visibility.ts'
export { endUnneededSettings } from './ended-settings.ts'
export { KnownRetentions } from './known-retentions.ts'
export { LogRetention } from './log-retention.ts'
export { getContentDays, maxContentDays, setContentDays } from './manage-retention.ts'
export { RecordReduction } from './record-reduction.ts'
export { getRecordDays, setRecordDays } from './record-retention.ts'
export { type PrivacyReport, reportPrivacy } from './report.ts'
export { eraseUnneededContents } from './unneeded-contents.ts'
