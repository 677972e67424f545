/** The role `housekeeping`: its own loop, the DNS records and the MTA-STS policy of the platform, and TLS reports about the mail servers of others. */
import { openCommit, openOwnMail } from '#accept'
import type { Config, DnsUpdateTarget, TlsReporter } from '#base'
import { databaseNowMs } from '#db'
import { ensurePlatformKey } from '#domains'
import { startHousekeeping } from '#housekeeping'
import { openLimitSettings } from '#limits'
import { startMtaSts } from '#mta-sts'
import { openGuard, openPost, openResolver } from '#net'
import { openWaker } from '#spool'
import { openTenants } from '#tenants'
import { clock, failpoint, type Ground, ids, type RunningRole } from './process.ts'

export function openHousekeeping({ config, log, secrets, db }: Ground): Promise<RunningRole> {
  return startHousekeeping({
    db,
    clock,
    databaseNowMs: () => databaseNowMs(db),
    log,
    resolver: openResolver({ servers: config.resolvers, clock, ids }),
    hostname: config.hostname,
    keep: config,
    autoPause: config,
    limitSettings: openLimitSettings({ db, clock, config }),
    secrets,
    reputation: config,
    keyRotation: { ids, secrets, config, resolvers: eachResolver(config) },
  })
}

/** Writes the platform's own DNS records. */
export async function openDnsUpdates({ config, log, secrets, db }: Ground, target: DnsUpdateTarget): Promise<RunningRole> {
  const [{ startDnsUpdates }, { readPlatform }, { digestStsRecords }] = await Promise.all([
    import('#dns-updates'),
    import('#doctor'),
    import('#mta-sts'),
  ])
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  return startDnsUpdates({
    db,
    clock,
    log,
    random: () => ids.random(),
    target,
    hostname: config.hostname,
    resolver,
    readPlatform: () => readPlatform({ config, db, clock, ids, secrets }, resolver),
    digestPlatform: () => digestStsRecords(db, config.hostname),
  })
}

/** Brings the MTA-STS policy of the return-path name to its next stage, or withdraws it. */
export function openMtaSts({ config, log, db }: Ground): RunningRole {
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const { allowedNetworks: openedNetworks } = config
  const { get } = openPost({ resolver, guard: openGuard(openedNetworks), openedNetworks, clock })
  return startMtaSts({ db, clock, log, resolver, get, config })
}

/** Sends TLS reports about the mail servers of others. */
export async function openTlsReports({ config, log, secrets, db }: Ground, reporter: TlsReporter): Promise<RunningRole> {
  const { startTlsReports } = await import('#tls-reports')
  const { hostname, sandboxSender, allowedNetworks: openedNetworks } = config
  const senderDomain = sandboxSender.slice(sandboxSender.lastIndexOf('@') + 1)
  await ensurePlatformKey(db, senderDomain, { nowMs: clock.nowMs(), ids, secrets })
  const limitSettings = openLimitSettings({ db, clock, config })
  const commit = openCommit({ db, clock, ids, limitSettings, wake: openWaker({ db, clock }), failpoint })
  const submit = openOwnMail({ clock, ids, tenants: openTenants({ db, clock }), commit, hostname })
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const post = openPost({ resolver, guard: openGuard(openedNetworks), openedNetworks, clock })
  const sending = startTlsReports({ db, clock, log, resolver, post, submit, reporter, senderDomain, hostname })
  // Not awaited: a receiver of reports may be slow, and the rest of the stop would wait. An unfinished report is repeated later.
  return { stop: async () => void sending.stop() }
}

/** One for each resolver of the settings, or one for those of the system. */
const eachResolver = ({ resolvers }: Config) =>
  (resolvers.length > 0 ? resolvers.map((one) => [one]) : [[]]).map((servers) => openResolver({ servers, clock, ids }))
