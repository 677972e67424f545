/** Reads DMARC records (RFC 7489 section 6.3). Pure; linear in the length of the text. */

export const dmarcPolicies = ['none', 'quarantine', 'reject'] as const
export type DmarcPolicy = (typeof dmarcPolicies)[number]

export const isDmarcRecord = (text: string): boolean => /^v\s*=\s*DMARC1\s*(?:;|$)/.test(text)

/** The policy of tag p, in any case; null if the tag is absent or has another value. */
export function dmarcPolicyOf(record: string): DmarcPolicy | null {
  const named = /;\s*p\s*=\s*(none|quarantine|reject)\s*(?:;|$)/i.exec(record)?.[1]?.toLowerCase()
  return dmarcPolicies.find((policy) => policy === named) ?? null
}
