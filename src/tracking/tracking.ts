/**
 * Track domains: host names of a tenant under which opens and clicks of its mail are counted, once their CNAME has been seen.
 * Owns: track_domains. Uses: base, net, db, tenants, domains. Used by: housekeeping, http.
 * Promises: a full name belongs to one tenant; a resolver that does not answer changes nothing.
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
