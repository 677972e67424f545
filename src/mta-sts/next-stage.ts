/**
 * Decides the next stage of the policy from the present one and the findings of a look. Pure. The policy changes first and the DNS record after it; a
 * record appears only after a probe of the mail port that found a valid certificate at every address.
 */
import { maxAgeS, type PolicyMode } from './policy-text.ts'

export interface PolicyStage {
  /** Of the served policy; null: none is served. */
  mode: PolicyMode | null
  modeSince: Date | null
  /** The mode that the DNS record announces; null: no record. */
  listed: PolicyMode | null
  /** The policy's host name leads here, and may have a certificate. */
  leadsHere: boolean
  /** Of the mail port, when it was last seen valid. */
  certificateEndsAt: Date | null
  /** Since then every conclusive probe found a valid certificate. */
  goodSince: Date | null
  /** Since then no probe did. */
  badSince: Date | null
  problem: string | null
}

/** The operator's wish, by POSTRIDER_MTA_STS. */
export type Wish = 'off' | 'testing' | 'enforce'

/** `unknown`: the probe could not be made. */
export type PortFinding = { kind: 'fit'; endsMs: number } | { kind: 'unfit' | 'unknown'; reason: string }

export interface Seen {
  /** POSTRIDER_HTTPS is on. */
  canServe: boolean
  /** Where the policy's host name leads. */
  name: 'here' | 'elsewhere' | 'missing' | 'unknown'
  /** Another policy record stands at the name of the DNS record. */
  hasForeignRecord: boolean
  /** The policy host's answer is the policy of this stage; otherwise the reason. */
  served: true | string
  port: PortFinding
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** `testing` lasts a week before `enforce`: TLS reports of other servers arrive daily. */
export const testingMs = 7 * dayMs
/** `enforce` needs a certificate that is valid for so long: the lifetime of the policy, and half a day. */
export const outliveMs = maxAgeS * 1000 + 12 * hourMs
/** A certificate that stays invalid for so long ends the policy. */
export const toleratedMs = dayMs
/** Senders have forgotten an earlier policy after its lifetime. */
export const withdrawMs = maxAgeS * 1000 + 2 * hourMs

export const noStage: PolicyStage = {
  mode: null,
  modeSince: null,
  listed: null,
  leadsHere: false,
  certificateEndsAt: null,
  goodSince: null,
  badSince: null,
  problem: null,
}

export function nextStage(before: PolicyStage, wish: Wish, seen: Seen, nowMs: number): PolicyStage {
  if (wish === 'off' || !seen.canServe) return withdrawn(before, seen, nowMs)
  if (seen.hasForeignRecord) return { ...noStage, problem: 'another MTA-STS record stands at the name: the policy is left to its owner' }
  if (seen.name === 'elsewhere') return { ...noStage, problem: 'the name of the policy does not lead to this installation' }
  const facts = withFindings(before, seen, nowMs)
  return listing({ ...facts, ...nextMode(facts, wish, seen.port, nowMs) }, before, seen)
}

function withFindings(before: PolicyStage, { name, port }: Seen, nowMs: number): PolicyStage {
  const facts = { ...before, leadsHere: name === 'unknown' ? before.leadsHere : name === 'here' }
  if (port.kind === 'unknown') return facts
  if (port.kind === 'fit')
    return { ...facts, certificateEndsAt: new Date(port.endsMs), goodSince: before.goodSince ?? new Date(nowMs), badSince: null }
  return { ...facts, certificateEndsAt: null, goodSince: null, badSince: before.badSince ?? new Date(nowMs) }
}

function nextMode(facts: PolicyStage, wish: Wish, port: PortFinding, nowMs: number): Pick<PolicyStage, 'mode' | 'modeSince' | 'listed'> {
  const { mode, modeSince, listed, certificateEndsAt, goodSince, badSince } = facts
  const same = { mode, modeSince, listed }
  const change = (to: PolicyMode) => ({ mode: to, modeSince: new Date(nowMs), listed })
  const outlives = certificateEndsAt !== null && certificateEndsAt.getTime() - nowMs > outliveMs
  const lastedMs = nowMs - (modeSince?.getTime() ?? nowMs)
  switch (mode) {
    case null:
      // Served before the record exists, so that it can be fetched.
      return facts.leadsHere ? change('testing') : same
    case 'enforce':
      return wish === 'enforce' && port.kind !== 'unfit' && outlives ? same : change('testing')
    case 'testing': {
      if (listed !== null && badSince !== null && nowMs - badSince.getTime() >= toleratedMs) return change('none')
      const isProven = listed === 'testing' && goodSince !== null && nowMs - goodSince.getTime() >= testingMs && lastedMs >= testingMs
      return wish === 'enforce' && isProven && outlives && port.kind === 'fit' ? change('enforce') : same
    }
    case 'none':
      if (port.kind === 'fit') return change('testing')
      return lastedMs >= withdrawMs ? { mode: null, modeSince: null, listed: null } : same
  }
}

/** The record follows the policy, once the policy was fetched. */
function listing(stage: PolicyStage, before: PolicyStage, { name, served, port }: Seen): PolicyStage {
  const isServed = served === true && stage.mode === before.mode
  // A published record follows each change of the policy, also one that an invalid certificate causes.
  const mayList = stage.listed !== null || (port.kind === 'fit' && name === 'here')
  const listed = stage.mode !== null && isServed && mayList ? stage.mode : stage.listed
  return { ...stage, listed, problem: problemOf(name, served, port) }
}

function problemOf(name: Seen['name'], served: Seen['served'], port: PortFinding): string | null {
  if (name === 'missing') return 'the name of the policy has no record in DNS'
  if (name === 'unknown') return 'the DNS lookup of the names failed'
  if (port.kind === 'unfit') return `the mail port does not satisfy a policy: ${port.reason}`
  if (port.kind === 'unknown') return `the mail port could not be probed from this machine: ${port.reason}`
  return served === true ? null : `the policy is not served: ${served}`
}

/** RFC 8461 section 8.3: mode `none` until senders have forgotten the earlier policy, and then no record. */
function withdrawn(before: PolicyStage, { canServe, hasForeignRecord, served }: Seen, nowMs: number): PolicyStage {
  const { mode, modeSince, listed } = before
  if (mode === null || modeSince === null || listed === null || hasForeignRecord || !canServe) return noStage
  if (mode !== 'none') return { ...before, mode: 'none', modeSince: new Date(nowMs), problem: null }
  if (nowMs - modeSince.getTime() >= withdrawMs) return noStage
  return { ...before, listed: served === true ? 'none' : listed, problem: served === true ? null : `the policy is not served: ${served}` }
}
