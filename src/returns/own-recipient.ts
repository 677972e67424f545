/**
 * Finds the facts of a report about the recipient of its email. A report may name another address instead: the target of a forward, or a
 * member of a group. The recipient's own address may work then.
 */
import { parseAddress } from '#mail'
import type { ReceivedReport, RecipientReport } from './report-summary.ts'

export interface OwnFailure {
  /** With the facts about the recipient, if the report names it. */
  report: ReceivedReport
  /** false: the report names only other addresses. */
  isOwn: boolean
}

/** Undefined if the report names the recipient and it did not fail: delivered, relayed, expanded or delayed. */
export function ownFailure(report: ReceivedReport, recipient: string): OwnFailure | undefined {
  const all: readonly RecipientReport[] = report.recipients ?? [{ ...report, action: 'failed' }]
  const own = all.filter((one) => one.recipient !== null && isOwn(one.recipient, recipient))
  // A list that is expanded and then named for a member's failure was reached.
  if (own.some(({ action }) => action !== 'failed' && action !== 'delayed')) return undefined
  const failed = own.find(({ action }) => action === 'failed')
  if (own.length > 0 && !failed) return undefined
  const facts = failed ?? all.find((one) => one.recipient === null && one.action === 'failed')
  if (!facts) return { report, isOwn: all.length === 0 }
  const { action: _, ...its } = facts
  return { report: { ...report, ...its }, isOwn: true }
}

/**
 * Whether a reported address is a form of the own one: with or without a `+` suffix, at a host of its domain, or encoded as VERP and SRS do. Any
 * other local part counts as another address even at the same domain, as members of a group have it. An alias of the same mailbox is not
 * recognised: its failure then suppresses nothing, which costs one more bounce, but a wrong suppression stops mail to a working address.
 */
function isOwn(reported: string, own: string): boolean {
  const [theirs, ours] = [partsOf(reported), partsOf(own)]
  if (!theirs || !ours) return reported.toLowerCase() === own.toLowerCase()
  if (theirs.local === ours.local && theirs.domain === ours.domain) return true
  const encoded = [`${ours.local}=${ours.domain}`, `${ours.domain}=${ours.local}`]
  if (encoded.some((one) => holdsWhole(theirs.local, one))) return true
  return withoutSuffix(theirs.local) === withoutSuffix(ours.local) && areRelated(theirs.domain, ours.domain)
}

/** In lower case, as the list of suppressions compares addresses. */
function partsOf(address: string): { local: string; domain: string } | undefined {
  const parsed = parseAddress(address)
  return parsed && { local: parsed.local.toLowerCase().replace(/^"(.*)"$/, '$1'), domain: parsed.domain }
}

const withoutSuffix = (local: string) => local.replace(/(?<=.)\+.*$/s, '')

const areRelated = (one: string, other: string) => one === other || one.endsWith(`.${other}`) || other.endsWith(`.${one}`)

function holdsWhole(text: string, part: string): boolean {
  const at = text.indexOf(part)
  return at >= 0 && !/[\w.]/.test(text[at - 1] ?? ' ') && !/[\w.]/.test(text[at + part.length] ?? ' ')
}
