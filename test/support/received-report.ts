/** A sending domain of a service that has received one DMARC report. */
import { silentLog, systemClock } from '#base'
import { sql } from '#db'
import { openDomainReports, openReportAddresses, readReportMailHere } from '#domain-reports'
import { mailOf } from './dmarc-dialects.ts'
import type { Service } from './in-process-service.ts'

const uuidOf = sql<{ uuid: string }>`
  select uuid
  from domains
  where name = $1`

const daySeconds = 86_400

/** 100 aligned messages from 192.0.2.1, and 7 forged ones from 198.51.100.9. */
export async function receiveReport({ db, secrets }: Service, domain: string): Promise<void> {
  const { uuid } = (await db.first(uuidOf, [domain])) as { uuid: string }
  const address = openReportAddresses(secrets, 'rp.house.test').make(uuid)
  const beginSeconds = Math.floor(Date.now() / 1000 / daySeconds - 1) * daySeconds
  const common = { disposition: 'none' as const, headerFrom: domain, spf: 'fail' as const, spfDomain: 'bounces.esp.test' }
  const signed = { domain, selector: 's1', result: 'pass' }
  const mail = mailOf(
    {
      dialect: 'google',
      domain,
      id: 'one',
      beginSeconds,
      endSeconds: beginSeconds + daySeconds - 1,
      records: [
        { ...common, source: '192.0.2.1', count: 100, dkim: 'pass', signatures: [signed] },
        { ...common, source: '198.51.100.9', count: 7, dkim: 'fail', signatures: [] },
      ],
    },
    address,
  )
  const resolver = { txt: async () => ({ kind: 'nxdomain' as const }) }
  const deps = { db, clock: systemClock, log: silentLog, secrets, resolver, hostname: 'house.test', read: readReportMailHere }
  const refused = await openDomainReports(deps).take({ recipients: [address], address: '192.0.2.1' }, mail)
  if (refused) throw new Error(refused)
}
