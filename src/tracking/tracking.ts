/**
 * Open and click tracking: track domains (host names of a tenant under which opens and clicks of its mail are counted), the links to them
 * in mail, and the opens and clicks. Owns: track_domains, hits. Uses: base, mail, net, db, tenants, suppressions, domains, events, emails.
 * Used by: accept, delivery, housekeeping, doctor, http, main. Promises: a full name belongs to one tenant; a failed DNS lookup changes no
 * record; html is changed only at the links and the pixel, in one pass; a link leads only to the sender's URL; following a link never
 * waits for the database; a crash loses opens and clicks of less than two seconds.
 */
export { checkDueTrackDomains, verifyTrackDomain } from './check.ts'
export { eraseFromHits, listHits, trackingTables, writeHits } from './hit-records.ts'
export { type Hits, openHits } from './hits.ts'
export { openTrackHosts, type TrackHosts } from './hosts.ts'
export { isPrefetch } from './machines.ts'
export {
  addTrackDomain,
  changeTrackDomain,
  getTrackDomain,
  listTrackDomains,
  removeTrackDomain,
  type TrackDomain,
} from './records.ts'
export { type Recipient, trackHtml, trackHtmlOctets, unsubscribeFields } from './rewrite.ts'
export { openTokens, type TokenKind, type Tokens, type Tracked } from './tokens.ts'
export { openTracks, type Tracks } from './tracks.ts'
export { unsubscribe } from './unsubscribe.ts'
