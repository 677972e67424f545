/**
 * People who log in, and their sessions. Members of the organisation (without a tenant) may also receive sandbox mail.
 * Owns: members, sessions. Uses: base, db. Used by: accept, housekeeping, http, cli, main.
 * Promises: a sign-in link is kept as a hash only, works once and for 24 hours; a password is kept as argon2id only; a session that was
 * ended stops working in every process within a second.
 */
export {
  addMember,
  listMembers,
  membersAmong,
  type Role,
  removeMember,
  removeMembersOfTenant,
  resetMember,
  roles,
} from './records.ts'
export { openSessions, type Session, type Sessions } from './sessions.ts'
