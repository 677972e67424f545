/** Facts of the caller's account that both versions of SES's API show: quotas and sending domains. */
import type { Credential } from '#credentials'
import { type SesIdentityPage, sesQuota } from '#ses'
import type { VendorDeps } from './vendor-api.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const dayText = (ms: number) => new Date(ms).toISOString().slice(0, 10)

/** The smallest send limit that applies to the key: its own, its tenant's or the organisation's. */
async function sendLimitOf({ id, tenantId }: Credential, { limitSettings, tenants }: VendorDeps): Promise<number | null> {
  const { organisation, ceilings, keys } = await limitSettings.send()
  const limits = [organisation, ceilings.get(tenantId ?? (await tenants.default()).id), keys?.get(id)]
  const smallest = Math.min(...limits.map((limit) => limit ?? Number.POSITIVE_INFINITY))
  return Number.isFinite(smallest) ? smallest : null
}

/** The limits of the key, and the emails accepted in the last 24 hours, by the hour. */
export async function quotaOf(credential: Credential, deps: VendorDeps) {
  const { id, tenantId, mode } = credential
  const { clock, limitSettings, usage } = deps
  const nowMs = clock.nowMs()
  const lastDay = { period: `${dayText(nowMs - dayMs)}..${dayText(nowMs)}`, timezone: 'UTC', test: mode === 'test' }
  const [sendLimit, rate, { buckets }] = await Promise.all([
    sendLimitOf(credential, deps),
    limitSettings.rateOf(id),
    usage.overTime(tenantId, lastDay, 'hour'),
  ])
  const recent = buckets.filter(({ startMs }) => startMs > nowMs - dayMs)
  return { sendLimit, rate, sentLast24Hours: recent.reduce((sum, { counts }) => sum + counts.accepted, 0) }
}

export const shownQuota = async (credential: Credential, deps: VendorDeps) => sesQuota(await quotaOf(credential, deps))

/** Domains after the name `beyond`, by name: a page, and one more if there are more. */
export async function domainsBeyond(
  { tenantId }: Credential,
  { beyond, size, isWanted = () => true }: { beyond: string; size: number; isWanted?: SesIdentityPage['isWanted'] },
  { shownDomains }: VendorDeps,
) {
  const byName = new Map((await shownDomains.list(tenantId)).filter(isWanted).map((one) => [one.name, one]))
  const names = [...byName.keys()].filter((name) => name > beyond).sort()
  return names.slice(0, size + 1).flatMap((name) => byName.get(name) ?? [])
}
