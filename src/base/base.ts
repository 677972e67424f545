/**
 * Foundation of every module, without knowledge of mail, SQL or HTTP: clock, ids and randomness as parameters, settings, sealing, logs,
 * metrics, traces, and the catalogue of refusals. Its public interface is larger than others, because all modules use these terms.
 * Owns: no tables. Uses: no modules. Used by: every module.
 * Promises: no other file of the program reads the environment, the machine's clock or its randomness.
 */

export { metricsPage, reportToParent } from './aggregate-metrics.ts'
export { atMost } from './at-most.ts'
export { type Loop, startLoop } from './background-loop.ts'
export { type Cached, cached } from './cached.ts'
export { type Children, readFromParent, signalReady, startChildren } from './child-processes.ts'
export { type Clock, nextStep, nextTurn, pause, systemClock } from './clock.ts'
export { type Config, readConfig, settings } from './config.ts'
export { makeDataDirectory } from './data-directory.ts'
export { parseRelay, type Relay } from './delivery-settings.ts'
export { type DnsUpdateTarget, parseDnsUpdate, type TsigAlgorithm } from './dns-update-target.ts'
export { type Failpoint, openFailpoints } from './failpoints.ts'
export { openCollector, startMemoryManagement } from './garbage-collection.ts'
export {
  type AddressHasher,
  addressHashesOf,
  hashedPattern,
  isHashedAddress,
  openAddressHasher,
  unhashedPattern,
} from './hashed-addresses.ts'
export { hexDigitOf } from './hex-digit.ts'
export { derivedEmailId, emailIdPrefix, emailIdTimeMs, type Ids, openIds, type Random, systemRandom } from './ids.ts'
export { type HostedRole, hostedRoleNames } from './installation-settings.ts'
export { isInNetwork, type Network, networkFrom, networkOf, networksInSite, siteOf } from './ip-networks.ts'
export { endOfJsonString } from './json-scanner.ts'
export { portTaken } from './listen-errors.ts'
export { type Log, openLog, silentLog } from './log.ts'
export { machineMemory } from './machine-memory.ts'
export { cutMentionPattern, mentionPattern } from './mention-pattern.ts'
export { metrics } from './metrics.ts'
export { NetworkConnections } from './network-connections.ts'
export type { RoleValue } from './openid-settings.ts'
export { type FieldProblem, Refusal, type RefusalCode, refusals, wrongField } from './refusals.ts'
export { hasUsualExponent } from './rsa-exponent.ts'
export { type ShownSetting, shownSettings, takeEnvironment } from './secret-settings.ts'
export { fingerprintOf, openSecrets, type Sealer, type Secrets } from './secrets.ts'
export { openSemaphore } from './semaphore.ts'
export type { TlsReporter } from './sender-settings.ts'
export { ConfigError } from './setting.ts'
export { rejectUnstorableText, sanitiseJson, sanitiseText } from './storable-text.ts'
export type { EndedSpan, Traces } from './trace-context.ts'
export { openTraces } from './traces.ts'
export { serveTasks } from './worker-thread-tasks.ts'
export { openTaskProcess, openThread, TaskProcessEnded, type Thread, TookTooLong } from './worker-threads.ts'
/** For unreachable code: the compiler proves that every case is handled. */
export function assertNever(never: never): never {
  throw new Error(`impossible value: ${JSON.stringify(never)}`)
}
export { startInProcess } from './role-in-process.ts'
