/** The role `delivery`: sends queued mail. */
import { readReport } from '#bounces'
import { startDelivery } from '#delivery'
import { openDomains } from '#domains'
import { openResolver } from '#net'
import { openReturns, readHere } from '#returns'
import { openTenants } from '#tenants'
import { clock, failpoint, type Ground, ids, type RunningRole } from './process.ts'

export async function startDeliveryRole({ config, log, traces, secrets, db }: Ground, processId: string): Promise<RunningRole> {
  const tenants = openTenants({ db, clock })
  const domains = openDomains({ db, clock, secrets })
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const { hostname } = config
  const { takeReport } = openReturns({ db, clock, ids, log, secrets, tenants, resolver, hostname, read: readHere(readReport) })
  return startDelivery({ db, clock, ids, log, traces, secrets, domains, tenants, config, processId, takeReport, failpoint })
}
