/**
 * Open and click tracking: track domains (host names of a tenant under which opens and clicks of its mail are counted), the links to
 * them in mail, and the opens and clicks.
 * Owns: track_domains, tracking_events. Uses: base, mail, net, db, tenants, suppressions, domains, events, emails. Used by: accept,
 * delivery, privacy, housekeeping, doctor, postal, postmark, imports, http, cli, main.
 * Promises: a full name belongs to one tenant; a failed DNS lookup changes no record; html is changed only at the links and the pixel,
 * in one pass; a link leads only to the sender's URL; following a link never waits for the database; a crash loses opens and clicks of
 * less than two seconds.
 */

export { isPrefetch } from './bot-detection.ts'
export { openDueTrackDomains, resumeTrackDomainChecks, verifyTrackDomain } from './check-cname.ts'
export { countReaders } from './count-readers.ts'
export { countHitsWithAddresses, hashAddressesOfHits } from './hash-addresses.ts'
export { openTokens, type TokenKind, type Tokens, type Tracked } from './link-tokens.ts'
export { type TrackedRecipient, trackHtml, trackHtmlOctets, unsubscribeFields } from './rewrite-html.ts'
export { openSharedUnsubscribes } from './shared-unsubscribes.ts'
export { openTrackHosts, TooManyLookups, type TrackHost, type TrackHosts } from './track-domain-hosts.ts'
export {
  addTrackDomain,
  changeTrackDomain,
  getTrackDomain,
  listTrackDomains,
  listTrackNames,
  listVerifiedNames,
  removeTrackDomain,
  type TrackDomain,
} from './track-domains.ts'
export {
  type Activity,
  countHitsLeft,
  eraseFromHits,
  findHits,
  findReaderMarks,
  listHits,
  listTrackedEmails,
  removeHits,
  type StoredTrackingEvent,
  trackingTables,
  writeTrackingEvents,
} from './tracking-event-records.ts'
export { openTrackingEvents, type TrackingEvents } from './tracking-events.ts'
export { openTracks, type Tracks } from './tracking-settings.ts'
export { trimmedUrl } from './trimmed-url.ts'
export { unsubscribe } from './unsubscribe.ts'
