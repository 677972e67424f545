/** The DKIM rotation of sending domains, on a schedule of its own, so that slow resolvers delay no other task. */
import { type Clock, type Config, type Ids, type Log, type Loop, type Secrets, startLoop } from '#base'
import type { Db } from '#db'
import { isFullRound, keyRetentionMs, rotateDueDomains } from '#domains'
import type { Resolver } from '#net'
import { type RetrySettings, retryScheduleOf, type Wakefulness, wholeScheduleMs } from '#spool'
import type { EarlierClock } from './earlier-clock.ts'

const everyMs = 3000
/** The same without changes by the API and without mail lately. */
const asleepMs = 10_000
const dayMs = 86_400_000

export interface KeyRotationDeps {
  db: Db
  clock: Clock
  /** Decides when a key signs no more and when it is deleted. */
  earlierClock: EarlierClock
  ids: Ids
  secrets: Secrets
  log: Log
  wakefulness: Pick<Wakefulness, 'delayMs'>
  /** One for each resolver of POSTRIDER_DNS: all of them must return a record before its key signs. */
  resolvers: readonly Resolver[]
  config: Pick<Config, 'hostname' | 'dnsUpdate' | 'dkimRotateDays' | 'dkimRotateTxt'> & RetrySettings
}

export function startKeyRotation({ config, earlierClock, wakefulness, ...deps }: KeyRotationDeps): Loop {
  const { dkimRotateDays, dkimRotateTxt } = config
  const rotation = {
    ...deps,
    hostname: config.hostname,
    writesDns: config.dnsUpdate !== undefined,
    schedule: { everyMs: dkimRotateDays === undefined ? null : dkimRotateDays * dayMs, alsoTxt: dkimRotateTxt },
    keepMs: keyRetentionMs(wholeScheduleMs(retryScheduleOf(config))),
  }
  return startLoop({ ...deps, name: 'rotating DKIM keys', everyMs }, async (stopping) => {
    const { clock } = await earlierClock.read()
    return isFullRound(await rotateDueDomains({ ...rotation, clock }, stopping)) ? 0 : wakefulness.delayMs(everyMs, asleepMs)
  })
}
