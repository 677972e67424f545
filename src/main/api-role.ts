/** The role `api`: the HTTP server with everything behind it. */
import { shownSettings, systemRandom } from '#base'
import { publicAddresses, readPlatform, runChecks } from '#doctor'
import { ensurePlatformKey } from '#domains'
import { type HttpDeps, startHttp } from '#http'
import { openPresence } from '#limits'
import { openResolver } from '#net'
import { openAcceptance } from './acceptance-pipeline.ts'
import { clock, environment, type Ground, ids, type RunningRole, version } from './process.ts'

const dashboardFolder = new URL('../../dashboard/dist', import.meta.url).pathname
const referenceFolder = new URL('../../dashboard/reference', import.meta.url).pathname
const docsFolder = new URL('../../docs', import.meta.url).pathname
/** The HTTPS port of track domains. */
const httpsPort = 443

interface ApiFacts {
  ending: AbortSignal
  smtp: (() => boolean) | undefined
  https: HttpDeps['https']
}

export async function startApi(ground: Ground, { ending, smtp, https }: ApiFacts): Promise<RunningRole> {
  const { config, log, traces, secrets, db } = ground
  const { uses, ...acceptance } = openAcceptance(ground)
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const { sandboxSender } = config
  const sandboxDomain = sandboxSender.slice(sandboxSender.lastIndexOf('@') + 1)
  await ensurePlatformKey(db, sandboxDomain, { nowMs: clock.nowMs(), ids, secrets })
  const presence = await openPresence({ db, clock, log, ending })
  const stopShared = async () => {
    await presence.stop()
    await uses.stop()
  }
  const http = await startHttp({
    ...acceptance,
    config,
    log,
    traces,
    secrets,
    db,
    clock,
    ids,
    random: systemRandom,
    resolver,
    isAlone: () => presence.isAlone(),
    dashboardFolder,
    referenceFolder,
    docsFolder,
    installation: {
      version,
      settings: shownSettings(environment),
      runChecks: async () => {
        const records = await readPlatform({ config, db, clock, ids, secrets }, resolver)
        return runChecks({ db, clock, config, resolver, records, ownAddresses: publicAddresses(), httpsPort })
      },
    },
    smtp,
    https,
  }).catch(async (error: unknown) => {
    await stopShared()
    throw error
  })
  return {
    async stop() {
      await http.stop()
      await stopShared()
    },
  }
}
