/** Checks the MTA-STS policy of the return-path name, from the stage that the role housekeeping recorded. */
import { findStsStage, stsHostOf, stsRecordNameOf } from '#mta-sts'
import { type Check, checkResult, ok } from './check-result.ts'

/** The stage is looked at each hour at least. */
const staleMs = 3 * 3_600_000

export const checkMtaSts: Check = async ({ db, clock, config }) => {
  const { hostname, mtaSts } = config
  const name = 'MTA-STS policy'
  const stage = await findStsStage(db, hostname)
  const mode = stage?.mode ?? null
  if (mtaSts === 'off' && mode === null) return []
  if (!stage) return [checkResult(name, 'unknown', 'not looked at yet', 'Start the service with the role housekeeping')]
  const { problem, listed, modeSince, lookedAt } = stage
  const since = modeSince ? ` since ${modeSince.toISOString()}` : ''
  const served = mode === null ? 'not served' : `mode ${mode}${since}`
  const record = listed === null ? `${stsRecordNameOf(hostname)} is not published` : `${stsRecordNameOf(hostname)} announces ${listed}`
  const state = `${served}, ${record}`
  if (clock.nowMs() - lookedAt.getTime() > staleMs)
    return [
      checkResult(name, 'unknown', `last looked at ${lookedAt.toISOString()}: ${state}`, 'Start the service with the role housekeeping'),
    ]
  if (problem !== null)
    return [
      checkResult(
        name,
        'warning',
        `${problem}; ${state}`,
        `Correct the cause: Postrider looks again every two minutes. See docs/mta-sts.md, and publish the record of ${stsHostOf(hostname)} that postrider dns lists`,
      ),
    ]
  return [ok(name, state)]
}
