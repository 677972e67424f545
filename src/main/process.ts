/**
 * Facts of this process that every role uses: its clock, ids, environment and version, and the resources that the roles of one process
 * share.
 */
import { readFileSync } from 'node:fs'
import {
  type Config,
  type Ids,
  type Log,
  openFailpoints,
  openIds,
  openTraces,
  readFromParent,
  type Secrets,
  systemClock,
  systemRandom,
  type Traces,
  takeEnvironment,
} from '#base'
import type { Db } from '#db'

export const clock = systemClock
export const ids: Ids = openIds(systemRandom)
/** Secret variables are removed, so that child processes do not inherit them. */
export const environment = { ...takeEnvironment(process.env), ...readFromParent(process.env) }
/** For `postrider crash-test`; undefined otherwise. */
export const failpoint = openFailpoints(environment.POSTRIDER_FAILPOINTS)
export const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }

export const tracesOf = (config: Config, log: Log, role: string) => openTraces(config, { clock, log, random: systemRandom, version, role })

/** The resources that every process of the service needs. */
export interface Ground {
  config: Config
  log: Log
  traces: Traces | undefined
  secrets: Secrets
  db: Db
}

export interface RunningRole {
  stop(): Promise<void>
}
