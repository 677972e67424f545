/**
 * Foundation of every module, without knowledge of mail, SQL or HTTP: clock, ids and randomness as parameters, settings, sealing, logs,
 * metrics, traces, and the catalogue of refusals. Its public interface is larger than others, because all modules use these terms.
 * Owns: nothing. Uses: nothing. Used by: every room.
 * Promises: no other file of the program reads the environment, the machine's clock or its randomness.
 */
export { type Children, readFromParent, startChildren, tellReady } from './children.ts'
export { type Clock, pause, systemClock } from './clock.ts'
export {
  type Config,
  ConfigError,
  readConfig,
  type ShownSetting,
  settings,
  shownSettings,
  takeEnvironment,
} from './config.ts'
export { openCrashPoints, type Reached } from './crash-points.ts'
export { openCollector } from './garbage.ts'
export { openGate } from './gate.ts'
export { emailIdPrefix, emailIdTimeMs, type Ids, openIds, type Random, systemRandom } from './ids.ts'
export { endOfJsonString } from './json-text.ts'
export { type Log, openLog, silentLog } from './log.ts'
export { type Loop, startLoop } from './loop.ts'
export { metrics } from './metrics.ts'
export { metricsPage, tellParent } from './metrics-page.ts'
export { liesIn, type Network, networkOf, siteOf } from './networks.ts'
export { portTaken } from './ports.ts'
export { type FieldProblem, Refusal, type RefusalCode, refusals, wrongField } from './refusals.ts'
export { type Remembered, remembered } from './remembered.ts'
export { fingerprintOf, openSecrets, type Sealer, type Secrets } from './secrets.ts'
export type { EndedSpan, Traces } from './span.ts'
export { makeStateFolder } from './state-folder.ts'
export { refuseOddText, storable, storableJson } from './text.ts'
export { serveTasks } from './thread-tasks.ts'
export { openThread, type Thread, TookTooLong } from './threads.ts'
export { openTraces } from './traces.ts'
/** For unreachable code: the compiler proves that every case is handled. */
export function impossible(never: never): never {
  throw new Error(`impossible value: ${JSON.stringify(never)}`)
}
