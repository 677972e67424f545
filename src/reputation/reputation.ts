/**
 * Reputation: how mailbox providers treat the mail, by sending domain, egress source and provider; blocklists; changes since yesterday, and
 * notifications of them. Owns: reputation_days, reputation_position, reputation_notices, blocklist_checks. Uses: base, net, simulator, db,
 * tenants, events, emails, spool, delivery, domain-reports. Used by: housekeeping, doctor, http, cli. Promises: each event of the log counts once, also after a
 * crash; no blocklist is asked that the settings do not name; an owner is notified of a finding once a day.
 */
import type { Config } from '#base'
import { openProviders } from '#delivery'
import { mailSiteOf } from '#net'
import type { ProviderOf } from './count-outcomes.ts'

export { type BlocklistDeps, checkDueBlocklists, startBlocklistChecks } from './blocklist-checks.ts'
export { blocklistName } from './blocklists.ts'
export { countOutcomes, startCountingOutcomes } from './count-outcomes.ts'
export { type FindingKind, findingKinds, type ReputationFinding } from './findings.ts'
export { notifyChanges } from './record-notices.ts'
export { deleteOldDays, type Grouping, groupings } from './reputation-days.ts'
export { maxDays, type ReputationSummary, type SourceState, summariseReputation } from './summary.ts'

/** Providers that no rule names are counted together, so that the number of rows does not grow with the number of mail servers. */
const others = 'others'

/** The provider of a mail server. With POSTRIDER_RELAY, that of mail without a transport is the relay. */
export function openProviderNames({ relay, providerRules }: Pick<Config, 'relay' | 'providerRules'>): ProviderOf {
  const providers = openProviders(providerRules)
  return (host, isDirect) => {
    if (relay && !isDirect) return 'relay'
    const { name, isNamed } = providers.of(host, mailSiteOf(host))
    return isNamed ? name : others
  }
}
