/** A delivery process beside a service that has none, so that a test can stop it, or break its database. */
import { openIds, readConfig, silentLog, systemClock, systemRandom } from '#base'
import { type DeliveryDeps, startDelivery } from '#delivery'
import { openDomains } from '#domains'
import { openTenants } from '#tenants'
import type { Service } from './in-process-service.ts'

/** `more`: deps that replace the usual ones. */
export function startDeliveryBeside(
  { db, secrets }: Pick<Service, 'db' | 'secrets'>,
  environment: Record<string, string>,
  more: Partial<DeliveryDeps> = {},
) {
  const clock = more.clock ?? systemClock
  return startDelivery({
    db,
    clock,
    ids: openIds(systemRandom),
    log: silentLog,
    secrets,
    domains: openDomains({ db, clock, secrets }),
    tenants: openTenants({ db, clock }),
    config: readConfig({ POSTRIDER_HOSTNAME: 'house.test', ...environment }),
    processId: 'test',
    ...more,
  })
}
