/** The role `inbound`: the SMTP listeners, for submission and for incoming mail. */
import { openDomainReports, openReportMailReader } from '#domain-reports'
import { startInbound } from '#inbound'
import { openResolver } from '#net'
import { openReceivedMailReader, openReceiving } from '#received-mail'
import { openReader, openReturns } from '#returns'
import { openAcceptance } from './acceptance-pipeline.ts'
import { clock, type Ground, ids, type RunningRole } from './process.ts'

export async function startInboundRole(ground: Ground): Promise<RunningRole> {
  const { config, log, traces, secrets, db } = ground
  const { tenants, domains, accept, credentials, uses } = openAcceptance(ground)
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const reader = openReader({ clock, log })
  const { hostname } = config
  const returns = openReturns({ db, clock, ids, log, secrets, tenants, resolver, hostname, read: reader.read })
  const mailReader = openReportMailReader({ clock, log })
  const reports = openDomainReports({ db, clock, log, secrets, resolver, hostname, read: mailReader.read })
  const routeReader = openReceivedMailReader({ clock, log })
  const receiving = { db, clock, ids, log, secrets, domains, tenants, resolver, hostname, read: routeReader.read }
  const routes = openReceiving({ ...receiving, forward: (octets, to, by) => accept.forwardRouted(octets, to, by) })
  const store = config.https ? await (await import('#certificates')).openCertificateStore({ db, clock, log, secrets }) : undefined
  const inbound = await startInbound({ db, clock, log, traces, accept, credentials, returns, reports, routes, config, store })
  return {
    async stop() {
      await inbound.stop()
      await store?.stop()
      reader.stop()
      mailReader.stop()
      routeReader.stop()
      await uses.stop()
    },
  }
}
