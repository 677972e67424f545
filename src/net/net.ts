/**
 * What we ask of the outside: DNS, with its DNSSEC verdict too, the route of a domain's mail and its policies of TLS, HTTP requests to
 * addresses that others have given us, and which addresses may be connected to.
 * Owns: nothing. Uses: base. Used by: domains, tracking, delivery, returns, webhooks, housekeeping, doctor, http, cli, main.
 * Promises: every question is bounded in time; an address is checked where it is connected to, whatever named it.
 */
export { type Dnssec, openDnssec, type TlsaRecord } from './dnssec.ts'
export { type AddressGuard, openGuard } from './guard.ts'
export { fetchStsPolicy, findStsId, isListedMx, type StsPolicy } from './mta-sts.ts'
export { type Get, openPost, type Post, type PostOutcome } from './post.ts'
export { type DnsAnswer, openResolver, type Resolver } from './resolver.ts'
export { type AddressesResult, destinationOf, findAddresses, findRoute, type Route, type RouteHost, type RouteOptions } from './route.ts'
export { daneComplaint, needsNames, usableTlsa } from './tlsa.ts'
