/**
 * What we ask of the outside: DNS, the route of a domain's mail, HTTP requests to addresses that others have given us, and which addresses
 * may be connected to.
 * Owns: nothing. Uses: base. Used by: domains, tracking, delivery, webhooks, housekeeping, doctor, http, cli, main.
 * Promises: every question is bounded in time; an address is checked where it is connected to, whatever named it.
 */
export { type AddressGuard, openGuard } from './guard.ts'
export { openPost, type Post, type PostOutcome } from './post.ts'
export { type DnsAnswer, openResolver, type Resolver } from './resolver.ts'
export { type AddressesResult, findAddresses, findRoute, type Route, type RouteHost, type RouteOptions } from './route.ts'
