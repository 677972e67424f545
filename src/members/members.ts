/**
 * People who sign in, their sessions, and the audit log. Members of the organisation (without a tenant) may also receive sandbox mail.
 * Owns: members, sessions, sign_in_failures, recovery_codes, audit_entries. Uses: base, db, tenants. Used by: openid, accept, housekeeping,
 * installation, imports, privacy, agents, http, cli.
 * Promises: a sign-in link is stored only as a hash, works once and for 24 hours; a password is stored only as argon2id; the secret of a
 * second factor is sealed, its recovery codes are hashes, and no code is accepted twice; an account of the identity provider belongs to one member; limits on guessing hold across all processes
 * and lock no other user out; an ended session stops working in every process within a second.
 */
export { type AuditAction, dropOldAudit, listAudit, recordAction, recordActionOnce } from './audit.ts'
export {
  addMember,
  changeRole,
  listMembers,
  listMembersOf,
  membersAmong,
  type Role,
  removeMember,
  removeMembersOfTenant,
  resetMember,
  resetSecondFactor,
  roles,
  signInMeansOf,
  takesPassword,
} from './manage-members.ts'
export type { AccountChanges, ProvenAccount } from './provider-sign-in.ts'
export { openSessions, type Session, type Sessions, type SignedIn } from './sessions.ts'
export { dropOldFailures } from './sign-in-throttle.ts'
export {
  beginSecondFactor,
  confirmSecondFactor,
  getSecondFactor,
  removeSecondFactor,
  renewRecoveryCodes,
  sealedOfMembers,
} from './two-factor.ts'
export { type From, SeveralMembers, type SignInProof } from './verify-sign-in.ts'
