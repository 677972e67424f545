/**
 * Asks the blocklists of POSTRIDER_BLOCKLISTS about the addresses of this installation, once a day, on a schedule of its own: slow resolvers
 * delay no other task. Without the setting it does not ask. A check that does not end is claimed again later.
 */
import { type Clock, type Config, type Log, type Loop, startLoop } from '#base'
import type { Db } from '#db'
import { listSources } from '#delivery'
import { openGuard, type Resolver } from '#net'
import { type BlocklistPair, claimDuePairs, deleteOtherPairs, saveListing, saveNoAnswer, shownZone } from './blocklist-records.ts'
import { openBlocklists } from './blocklists.ts'

const everyMs = 60_000
/** Less than a day, so that the time of day of the check does not move. */
const checkAgainMs = 86_400_000 - 600_000
const claimMs = 600_000
/** Longer than between two checks by any process. */
const forgetMs = 2 * 86_400_000
const maxPerRound = 40
const atOnce = 8
const maxAddresses = 500

export interface BlocklistDeps {
  db: Db
  clock: Clock
  log: Log
  resolver: Pick<Resolver, 'addresses'>
  hostname: string
  config: Pick<Config, 'blocklists'>
}

/** The egress sources and the addresses of the host name; only public ones can be listed. Undefined: the name could not be looked up. */
async function ownAddresses({ db, resolver, hostname }: BlocklistDeps): Promise<string[] | undefined> {
  const [sources, named] = await Promise.all([listSources(db), resolver.addresses(hostname)])
  if (named.kind === 'trouble') return undefined
  const all = [...sources.map(({ address }) => address), ...(named.kind === 'found' ? named.value : [])]
  const guard = openGuard([])
  return [...new Set(all)].filter((address) => guard.allows(address)).slice(0, maxAddresses)
}

/** Checks the pairs that are due; returns their number. `addresses`: those of this installation. Those left at the end of `stopping` are claimed later. */
export async function checkDueBlocklists(deps: BlocklistDeps, stopping?: AbortSignal, addresses?: readonly string[]): Promise<number> {
  const { db, clock, log, config, resolver } = deps
  const checked = config.blocklists.length === 0 ? [] : (addresses ?? (await ownAddresses(deps)))
  if (!checked) return 0
  const pairs = config.blocklists.flatMap((zone) => checked.map((address) => ({ zone, address })))
  const nowMs = clock.nowMs()
  await deleteOtherPairs(db, pairs, new Date(nowMs - forgetMs))
  if (pairs.length === 0) return 0
  const [now, before, until] = [nowMs, nowMs - checkAgainMs, nowMs + claimMs].map((ms) => new Date(ms)) as [Date, Date, Date]
  const due = await claimDuePairs(db, pairs, { now, before, until, limit: maxPerRound })
  const lists = openBlocklists(resolver)
  const waiting = [...due]
  const worker = async () => {
    for (let pair = waiting.pop(); pair && !stopping?.aborted; pair = waiting.pop())
      await check(deps, lists, pair).catch((error) => log.warn({ err: error }, 'failed to check a blocklist; retrying'))
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return due.length
}

async function check({ db, clock, log }: BlocklistDeps, lists: ReturnType<typeof openBlocklists>, pair: BlocklistPair): Promise<void> {
  const verdict = await lists.ask(pair.zone, pair.address)
  const at = new Date(clock.nowMs())
  if (verdict.kind === 'silent') {
    await saveNoAnswer(db, pair, verdict.why, at)
    return
  }
  const isListed = verdict.kind === 'listed'
  const problem = verdict.kind === 'ignored' ? verdict.why : null
  await saveListing(db, pair, { listed: isListed, codes: isListed ? verdict.codes : [], problem }, at)
  if (problem !== null) log.info({ zone: shownZone(pair.zone), problem }, 'blocklist ignored')
}

export const startBlocklistChecks = (deps: BlocklistDeps): Loop =>
  startLoop({ clock: deps.clock, log: deps.log, name: 'checking blocklists', everyMs }, async (stopping) =>
    (await checkDueBlocklists(deps, stopping)) < maxPerRound ? everyMs : 0,
  )
