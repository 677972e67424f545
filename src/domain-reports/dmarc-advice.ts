/** Advice on the next DMARC policy of a domain, none, quarantine or reject, with the evidence from its reports. Pure. */

import type { DmarcPolicy } from '#domains'

export interface Evidence {
  met: boolean
  text: string
}

export interface Advice {
  /** null: no policy is published. */
  policy: DmarcPolicy | null
  /** The stricter policy to publish next; null: the policy is the strictest. */
  next: DmarcPolicy | null
  /** Whether all evidence for `next` is met. */
  ready: boolean
  text: string
  evidence: Evidence[]
}

/** Figures of reports with a valid signature of their sender. */
export interface AdviceFacts {
  policy: DmarcPolicy | null
  /** Days with at least one message. */
  days: number
  messages: number
  /** Messages from this installation's addresses, or signed with the domain's key. */
  known: { messages: number; aligned: number }
  /** Unknown sources whose mail is mostly not aligned, and that send on many days: perhaps forgotten services of the owner. */
  regularUnaligned: string[]
}

export const adviceBounds = { days: 14, messages: 100, knownShare: 0.98, regularDays: 7, regularShare: 0.01 }
const shownSources = 3

const nextOf: Record<DmarcPolicy, DmarcPolicy | null> = { none: 'quarantine', quarantine: 'reject', reject: null }

export function adviseDmarc(facts: AdviceFacts): Advice {
  const { policy } = facts
  const evidence = evidenceOf(facts)
  const unmet = evidence.filter(({ met }) => !met)
  if (policy === null)
    return { policy, next: 'none', ready: true, text: 'Publish a DMARC record with p=none and the report address first', evidence }
  const next = nextOf[policy]
  const ready = next !== null && unmet.length === 0
  return { policy, next, ready, text: textOf(policy, next, unmet), evidence }
}

function textOf(policy: DmarcPolicy, next: DmarcPolicy | null, unmet: readonly Evidence[]): string {
  if (next === null) return 'The policy reject is the strictest: watch the sources below for mail of your own that is refused'
  if (unmet.length === 0) return `Publish p=${next}: all evidence is met`
  return `Keep p=${policy} until all evidence is met`
}

function evidenceOf({ days, messages, known, regularUnaligned }: AdviceFacts): Evidence[] {
  const { knownShare } = adviceBounds
  const share = known.messages === 0 ? 0 : known.aligned / known.messages
  const named = regularUnaligned.slice(0, shownSources).map((source) => source || 'other sources')
  return [
    { met: days >= adviceBounds.days, text: `Reports cover ${days} days with mail; ${adviceBounds.days} are needed` },
    {
      met: messages >= adviceBounds.messages,
      text: `${messages} messages are in signed reports; ${adviceBounds.messages} are needed`,
    },
    {
      met: known.messages > 0 && share >= knownShare,
      text:
        known.messages === 0
          ? 'No signed report mentions mail from Postrider yet'
          : `${percent(share)} of the mail from Postrider is aligned; ${percent(knownShare)} are needed`,
    },
    {
      met: regularUnaligned.length === 0,
      text:
        regularUnaligned.length === 0
          ? `No other source sends unaligned mail regularly, on ${adviceBounds.regularDays} days or more`
          : `${regularUnaligned.length} other ${regularUnaligned.length === 1 ? 'source sends' : 'sources send'} unaligned mail regularly (${named.join(', ')}): authenticate those that are yours`,
    },
  ]
}

/** Rounded down, so that 100% means all. */
const percent = (share: number) => `${Math.floor(share * 1000) / 10}%`
