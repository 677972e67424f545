/** HTTPS without a proxy: the HTTP port for challenges, the store of certificates, and their orders. */
import { type ChallengeKind, openCertificateStore, openChallengeBook, openChallengeContexts, startObtaining } from '#certificates'
import { openPlainPort } from '#http'
import { listStsNames } from '#mta-sts'
import { listTrackNames, listVerifiedNames } from '#tracking'
import { clock, type Ground, ids } from './process.ts'

/** The parts of POSTRIDER_HTTPS that belong to no role: the HTTP port, and the orders for the names that lead to this instance. */
export async function openHttps({ config, log, secrets, db }: Ground) {
  const hasApi = config.roles.includes('api')
  const challenges = openChallengeBook({ db, clock })
  const store = await openCertificateStore({ db, clock, log, secrets })
  const port = await openPlainPort({ challenges, log, config })
  const opened: { stop(): unknown }[] = [port, store]
  const kinds: readonly ChallengeKind[] = hasApi ? ['http-01', 'tls-alpn-01'] : ['http-01']
  const smtpNames = config.roles.includes('inbound') && config.tlsCert === undefined ? [config.hostname] : []
  return {
    serving: { store, challengeContexts: openChallengeContexts(challenges) },
    async obtain() {
      const loop = await startObtaining({
        db,
        clock,
        log,
        ids,
        secrets,
        directory: config.acmeDirectory,
        contact: config.acmeContact,
        own: [...new Set([...(hasApi ? [new URL(config.publicUrl).hostname] : []), ...smtpNames])],
        listVerifiedNames: async () => {
          if (!hasApi) return []
          const ofPolicy = (await listStsNames(db, config.hostname)).map((name) => ({ name, tenantId: null }))
          return [...ofPolicy, ...(await listVerifiedNames(db))]
        },
        listTrackNames: () => listTrackNames(db),
        challenges: kinds,
      })
      opened.unshift(loop)
    },
    async stop() {
      for (const one of opened) await one.stop()
    },
  }
}
