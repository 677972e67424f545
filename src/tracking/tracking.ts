/**
 * Track domains, host names of a tenant under which opens and clicks of its mail are counted; the links that lead there, written into
 * mail; and the opens and clicks themselves.
 * Owns: track_domains, hits. Uses: base, mail, net, db, tenants, suppressions, domains, events, emails. Used by: accept, delivery,
 * housekeeping, doctor, http, main.
 * Promises: a full name belongs to one tenant; a resolver that does not answer changes nothing; html is changed at the links and the
 * pixel only, in one pass; a link leads only where its sender wrote; nobody who follows one waits for the database, and what was not
 * yet written at a sudden end is less than two seconds old.
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
