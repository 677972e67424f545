/**
 * Changes since yesterday that an owner should see, as pure functions of the figures: more blocks, less TLS, fewer passes of DMARC, too many
 * complaints, a new entry on a blocklist. Small numbers do not cause one, because they change by chance.
 */

export const findingKinds = ['blocklist_new', 'complaint_rate_high', 'block_rate_up', 'dmarc_pass_rate_down', 'tls_share_down'] as const
export type FindingKind = (typeof findingKinds)[number]

export interface ReputationFinding {
  kind: FindingKind
  severity: 'warning' | 'problem'
  /** Null: of the whole installation. */
  tenantId: string | null
  /** The day (UTC) on which it counts. */
  day: string
  domain: string | null
  source: string | null
  provider: string | null
  /** The blocklist. */
  zone: string | null
  /** Shares from 0 to 1; null: without a comparison. */
  before: number | null
  now: number | null
  text: string
}

interface Share {
  part: number
  whole: number
}

/** A share of yesterday and of today, or of the last two days with reports. */
export interface ShareChange {
  tenantId: string | null
  day: string
  domain: string | null
  source: string | null
  provider: string | null
  before: Share
  now: Share
}

interface NewListing {
  zone: string
  address: string
  codes: readonly string[]
  /** The day (UTC) of the first check that found it. */
  day: string
}

/** The figures that findings are made of. `complaints.before` is empty: their rate has a fixed limit. */
export interface ChangeFacts {
  blocks: readonly ShareChange[]
  complaints: readonly ShareChange[]
  tls: readonly ShareChange[]
  dmarc: readonly ShareChange[]
  listings: readonly NewListing[]
}

/** The limits, as documented in docs/reputation.md. Complaints: Gmail's sender guidelines ask for less than 0.1% and never 0.3%. */
export const findingBounds = {
  /** Attempts of a day below which its rates are chance. */
  minAttempts: 50,
  minBlocked: 5,
  blockRate: 0.01,
  blockGrowth: 2,
  /** Without a comparable day before. */
  blockRateAlone: 0.05,
  blockProblem: 0.1,
  minAccepted: 100,
  fall: 0.05,
  fallProblem: 0.2,
  minComplaints: 5,
  complaintsHigh: 0.001,
  complaintsOver: 0.003,
} as const

/** More complaints than accepted emails are possible, because they arrive later. */
const shareOf = ({ part, whole }: Share) => (whole === 0 ? 0 : Math.min(1, part / whole))
const shown = (share: number) => `${Number((share * 100).toFixed(2))}%`
const subjectOf = ({ domain, source, provider }: Pick<ShareChange, 'domain' | 'source' | 'provider'>) =>
  [domain, source === '' ? 'the usual address' : source, provider === null || provider === '' ? null : `at ${provider}`]
    .filter((one) => one !== null)
    .join(' ')

const placeOf = ({ tenantId, day, domain, source, provider }: ShareChange) => ({ tenantId, day, domain, source, provider, zone: null })

/** More attempts are blocked than the day before. */
export function blockRateUp(change: ShareChange): ReputationFinding | undefined {
  const { before, now } = change
  const bounds = findingBounds
  if (now.whole < bounds.minAttempts || now.part < bounds.minBlocked) return undefined
  const rate = shareOf(now)
  const isComparable = before.whole >= bounds.minAttempts
  if (rate < (isComparable ? Math.max(bounds.blockRate, shareOf(before) * bounds.blockGrowth) : bounds.blockRateAlone)) return undefined
  const was = isComparable ? `, ${shown(shareOf(before))} yesterday` : ''
  return {
    kind: 'block_rate_up',
    severity: rate >= bounds.blockProblem ? 'problem' : 'warning',
    ...placeOf(change),
    before: isComparable ? shareOf(before) : null,
    now: rate,
    text: `${subjectOf(change)}: ${shown(rate)} of today's attempts are blocked${was}`,
  }
}

function fallen(change: ShareChange, kind: FindingKind, describe: (before: string, now: string) => string): ReputationFinding | undefined {
  const [before, now] = [shareOf(change.before), shareOf(change.now)]
  const { minAccepted, fall, fallProblem } = findingBounds
  if (change.before.whole < minAccepted || change.now.whole < minAccepted || before - now < fall) return undefined
  return {
    kind,
    severity: before - now >= fallProblem ? 'problem' : 'warning',
    ...placeOf(change),
    before,
    now,
    text: `${subjectOf(change)}: ${describe(shown(before), shown(now))}`,
  }
}

/** A smaller share of the accepted mail is encrypted than the day before. */
export const tlsShareDown = (change: ShareChange) =>
  fallen(change, 'tls_share_down', (before, now) => `${now} of today's accepted mail is encrypted, ${before} yesterday`)

/** A smaller share of the reported mail passes DMARC. */
export const dmarcPassRateDown = (change: ShareChange) =>
  fallen(change, 'dmarc_pass_rate_down', (before, now) => `${now} of the reported mail passes DMARC, ${before} the day before`)

/** Complaints of the last seven days reach a limit of the mailbox providers. */
export function complaintRateHigh(change: ShareChange): ReputationFinding | undefined {
  const { part, whole } = change.now
  const { minComplaints, complaintsHigh, complaintsOver } = findingBounds
  const rate = shareOf(change.now)
  if (part < minComplaints || rate < complaintsHigh) return undefined
  const isOver = rate >= complaintsOver
  return {
    kind: 'complaint_rate_high',
    severity: isOver ? 'problem' : 'warning',
    ...placeOf(change),
    before: null,
    now: rate,
    text: `${subjectOf(change)}: ${part.toLocaleString('en')} complaints about ${whole.toLocaleString('en')} emails accepted in 7 days (${shown(rate)}, the limit is ${shown(isOver ? complaintsOver : complaintsHigh)})`,
  }
}

const newlyListed = ({ zone, address, codes, day }: NewListing): ReputationFinding => ({
  kind: 'blocklist_new',
  severity: 'problem',
  tenantId: null,
  day,
  domain: null,
  source: address,
  provider: null,
  zone,
  before: null,
  now: null,
  text: `${address} is listed by ${zone} (${codes.join(', ')})`,
})

/** The names of a finding beside its kind: one notification a day for each. */
export const findingSubject = ({ domain, source, provider, zone }: ReputationFinding) => JSON.stringify([domain, source, provider, zone])

const rank = (finding: ReputationFinding) => (finding.severity === 'problem' ? 0 : findingKinds.length) + findingKinds.indexOf(finding.kind)

/** Problems first. The order depends on the findings only. */
export function findChanges({ blocks, complaints, tls, dmarc, listings }: ChangeFacts): ReputationFinding[] {
  const found = [
    ...listings.map(newlyListed),
    ...complaints.map(complaintRateHigh),
    ...blocks.map(blockRateUp),
    ...dmarc.map(dmarcPassRateDown),
    ...tls.map(tlsShareDown),
  ].filter((one) => one !== undefined)
  const orderOf = (one: ReputationFinding) => `${one.tenantId ?? ''} ${findingSubject(one)}`
  return found.sort((a, b) => rank(a) - rank(b) || (orderOf(a) < orderOf(b) ? -1 : 1))
}
