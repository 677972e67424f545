/**
 * Outbound queries: DNS with its DNSSEC verdict, the route of a domain's mail and its TLS policies, HTTP requests to URLs from untrusted
 * parties, updates of DNS zones, and the addresses that may be connected to. Owns: no tables. Uses: base. Used by: smtp, openid, certificates, domains,
 * tracking, delivery, returns, domain-reports, tls-reports, received-mail, message-checks, webhooks, reputation, housekeeping,
 * mta-sts, dns-updates, doctor, imports, http, cli, main.
 * Promises: every query has a time limit; an address is checked where the connection is opened, for addresses from any source.
 */
export { affordableCiphers, CostlyHandshakes, certificatesOf } from './costly-handshakes.ts'
export {
  maxUpdateOctets,
  openUpdateServer,
  type Prerequisite,
  type RecordChange,
  type UpdateServer,
  updateOctets,
  type ZoneUpdate,
} from './dns-update.ts'
export { textOfData, type UpdateType, updateTypes, wireData } from './dns-wire.ts'
export { type Dnssec, openDnssec, type TlsaRecord } from './dnssec.ts'
export { type Get, openPost, type Post, type PostOutcome } from './guarded-http.ts'
export { type AddressesResult, findAddresses, findRoute, mailSiteOf, type Route, type RouteHost, type RouteOptions } from './mail-route.ts'
export { fetchStsPolicy, findStsId, isListedMx, isStsRecord, type StsPolicy, stsResultOf } from './mta-sts.ts'
export { completeAnswer, type DnsAnswer, openResolver, type Resolver } from './resolver.ts'
export { readRetryAfter } from './retry-after.ts'
export { type AddressGuard, openGuard } from './ssrf-guard.ts'
export { findTlsReportUris, isTlsReportRecord } from './tls-report-record.ts'
export { daneComplaint, needsNames, usableTlsa } from './tlsa.ts'
