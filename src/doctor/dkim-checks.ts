/** Checks of the last DNS updates, and of the DKIM keys of sending domains. */
import { readDnsUpdates } from '#dns-updates'
import { listDomainKeys } from '#domains'
import { type Check, checkResult, ok } from './check-result.ts'

const minBits = 2048
const maxNamed = 5
/** A key without its record after this time: the owner of the domain has probably forgotten it. */
const forgottenMs = 14 * 86_400_000

const some = (names: readonly string[]) =>
  names.length > maxNamed ? `${names.slice(0, maxNamed).join(', ')} and ${names.length - maxNamed} more` : names.join(', ')

export const checkDkimKeys: Check = async ({ db, clock }) => {
  const domains = await listDomainKeys(db, null)
  const weak = domains.filter(({ bits }) => bits < minBits).map(({ name, bits }) => `${name} (${bits} bits)`)
  const waiting = domains.filter(({ others }) =>
    others.some(({ state, seenSince, createdAt }) => state === 'next' && !seenSince && clock.nowMs() - createdAt.getTime() > forgottenMs),
  )
  const name = 'keys of sending domains'
  return [
    weak.length > 0
      ? checkResult(
          name,
          'warning',
          `shorter than ${minBits} bits: ${some(weak)}`,
          'Receivers distrust short keys. Replace each: postrider dkim rotate DOMAIN',
        )
      : ok(name, `${domains.length} sending domains, none with a key shorter than ${minBits} bits`),
    ...(waiting.length > 0
      ? [
          checkResult(
            'new keys of sending domains',
            'warning',
            `new keys have waited for their records for two weeks: ${some(waiting.map((one) => one.name))}`,
            'Publish the records that postrider dkim show DOMAIN lists, or give up: postrider dkim rotate DOMAIN --cancel',
          ),
        ]
      : []),
  ]
}

export const checkDnsUpdates: Check = async ({ db, config }) => {
  if (!config.dnsUpdate) return []
  const name = 'DNS updates'
  const { run, records, problems } = await readDnsUpdates(db)
  if (!run) return [checkResult(name, 'unknown', 'no run yet', 'Start the service with the role housekeeping')]
  const next = `Postrider repeats it, next at ${run.nextAt.toISOString()}`
  if (run.problem !== null)
    return [
      checkResult(name, 'problem', `${run.problem} (${run.failures} failed runs)`, `Check POSTRIDER_DNS_UPDATE and the server. ${next}`),
    ]
  if (problems.length === 0) return [ok(name, `${records.length} records written, last run ${run.endedAt.toISOString()}`)]
  return problems
    .slice(0, maxNamed)
    .map(({ type, name: at, problem }) =>
      checkResult(
        name,
        'warning',
        `${type} ${at}: ${problem}`,
        `Remove the record in its way, allow the key to write it, or publish it by hand (postrider dns). ${next}`,
      ),
    )
}
