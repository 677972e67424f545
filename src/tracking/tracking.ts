/**
 * Track domains: host names of a tenant under which opens and clicks of its mail are counted, once their CNAME has been seen; and what
 * is written into mail for it.
 * Owns: track_domains. Uses: base, net, db, tenants, domains, emails. Used by: accept, delivery, housekeeping, http, main.
 * Promises: a full name belongs to one tenant; a resolver that does not answer changes nothing; html is changed at the links and the
 * pixel only, in one pass; a link leads where its sender meant, or nowhere.
 */
export { checkDueTrackDomains, verifyTrackDomain } from './check.ts'
export {
  addTrackDomain,
  changeTrackDomain,
  getTrackDomain,
  listTrackDomains,
  removeTrackDomain,
  type TrackDomain,
} from './records.ts'
export { type Recipient, trackHtml, trackHtmlOctets, unsubscribeFields } from './rewrite.ts'
export { openTokens, type Tokens } from './tokens.ts'
export { openTracks, type Tracks } from './tracks.ts'
