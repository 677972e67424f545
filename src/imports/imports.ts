/**
 * Imports from other mail programs: reads their records, compares them with this installation, and writes the missing ones.
 * Owns: import_positions. Uses: base, mail, dkim, net, db, tenants, members, credentials, limits, domains, suppressions, emails, tracking,
 * accept, delivery, webhooks. Used by: cli.
 * Promises: a record that exists stays as it is, so a second run changes nothing and an interrupted run is completed by the next; the
 * source is only read; a record that cannot come is reported with its reason; a queued message is sent once, however often it is read.
 */
export { importWebhooks, type WebhookLine, type WebhooksReport } from './import-webhooks.ts'
export { patientGet } from './patient-get.ts'
export { type ImportReport, importPostal } from './postal-import.ts'
export { openPostalSource } from './postal-source.ts'
export { loadDump } from './scratch-mariadb.ts'
export { domainVendors, importDomains, listSesDomains, listVendorDomains } from './vendor-domains.ts'
export { exportLists, exportVendors, readSuppressions, type VendorSuppression } from './vendor-suppressions.ts'
export { listWebhooksAt, webhookVendors } from './vendor-webhooks.ts'
