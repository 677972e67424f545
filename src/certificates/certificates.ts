/**
 * Certificates by ACME (RFC 8555): obtains, renews and shares the certificates of the installation's host names.
 * Owns: acme_accounts, certificates, acme_challenges. Uses: base, db, net. Used by: installation, doctor, inbound, http, cli, main.
 * Promises: private keys are sealed; one process at a time orders a name; a name has at most four failed orders in an hour, also if processes
 * die during them; a new certificate is in use within seconds, without a restart; outside requests cause no orders.
 */

export {
  type CertificateRecord,
  listCertificates,
  requestRenewal,
  sealedOfCertificates,
} from './certificate-records.ts'
export { type CertificateStore, openCertificateStore } from './certificate-store.ts'
export { type ChallengeContexts, openChallengeContexts } from './challenge-contexts.ts'
export { type Challenges, openChallengeBook } from './challenges.ts'
export { startObtaining } from './obtain-certificates.ts'
export type { ChallengeKind } from './schedule.ts'
