/** The DKIM rotation of sending domains, on a schedule of its own, so that slow resolvers delay no other task. */
import { type Clock, type Config, type Ids, type Log, type Loop, type Secrets, startLoop } from '#base'
import type { Db } from '#db'
import { isFullRound, keyRetentionMs, rotateDueDomains } from '#domains'
import type { Resolver } from '#net'
import { wholeScheduleMs } from '#spool'

const everyMs = 3000
const dayMs = 86_400_000

export interface KeyRotationDeps {
  db: Db
  clock: Clock
  ids: Ids
  secrets: Secrets
  log: Log
  /** One for each resolver of POSTRIDER_DNS: all of them must return a record before its key signs. */
  resolvers: readonly Resolver[]
  config: Pick<
    Config,
    'hostname' | 'dnsUpdate' | 'dkimRotateDays' | 'dkimRotateTxt' | 'maxAttempts' | 'retryBaseSeconds' | 'retryMaxSeconds'
  >
}

export function startKeyRotation({ config, ...deps }: KeyRotationDeps): Loop {
  const { dkimRotateDays, dkimRotateTxt, maxAttempts, retryBaseSeconds, retryMaxSeconds } = config
  const retries = { maxAttempts, baseMs: retryBaseSeconds * 1000, maxMs: retryMaxSeconds * 1000 }
  const rotation = {
    ...deps,
    hostname: config.hostname,
    writesDns: config.dnsUpdate !== undefined,
    schedule: { everyMs: dkimRotateDays === undefined ? null : dkimRotateDays * dayMs, alsoTxt: dkimRotateTxt },
    keepMs: keyRetentionMs(wholeScheduleMs(retries)),
  }
  return startLoop({ ...deps, name: 'rotating DKIM keys', everyMs }, async (stopping) =>
    isFullRound(await rotateDueDomains(rotation, stopping)) ? 0 : everyMs,
  )
}
