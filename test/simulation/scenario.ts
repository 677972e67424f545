/** A scenario drawn from a seed: the senders and times of the mail, the kinds of mail servers, and the faults. */
import type { SeededRandom } from '#crash-test'
import type { Host, Temper } from './mail-servers.ts'
import { startMs, type Tenancy } from './seed-databases.ts'

const secondMs = 1000
const minuteMs = 60_000
const hourMs = 3_600_000
const dayMs = 86_400_000
/** Minimum duration of every seed. */
export const weekMs = 7 * dayMs

export type StrikeKind =
  | 'dies before'
  | 'dies inside'
  | 'dies after'
  | 'freezes after'
  | 'answer lost'
  | 'database away'
  | 'partition'
  | 'disk full'
  | 'dies amid'
  | 'freezes amid'
  | 'dies at'
  | 'machine dies'
  | 'restart'
  | 'clock'

export type Doing =
  | { kind: 'send'; tenant: number; recipients: string[]; hasKey: boolean; test: boolean; times: number }
  | {
      kind: 'strike'
      what: StrikeKind
      victim: 'api' | 'delivery' | 'webhooks' | 'housekeeping'
      after: number
      forMs: number
      place: string
    }
  | { kind: 'pause tenant' | 'resume tenant'; tenant: number }
  | { kind: 'pause destination' | 'resume destination'; domain: string }
  | { kind: 'scale'; count: number }

export interface Planned {
  atMs: number
  doing: Doing
}

export interface Scenario {
  settings: Record<string, string>
  leaseMs: number
  processes: { api: number; delivery: number; webhooks: number }
  hosts: Host[]
  missing: string[]
  nullMx: string[]
  plan: Planned[]
  /** No more faults from then on. */
  healsAtMs: number
  sendLimit: number | null
  /** The first tenant fills the queue before delivery begins. */
  floods: boolean
  /** A copy is made in the middle of the run and restored at the end. */
  restoresAtMs: number | null
}

export function drawScenario(chance: SeededRandom, tenants: readonly Tenancy[]): Scenario {
  const { between, random, pick } = chance
  const some = (part: number) => random() < part
  const floods = some(0.12)
  const hosts = drawHosts(chance, floods ? 300 : between(4, 30))
  const missing = ['nowhere-1.example', 'nowhere-2.example']
  const nullMx = ['silent.example']
  const domains = hosts.flatMap((host) => host.domains)
  const healsAtMs = startMs + between(2, 5) * dayMs
  const plan: Planned[] = []
  let recipient = 0
  const address = () => {
    const domain = some(0.02) ? (pick([...missing, ...nullMx]) as string) : (pick(domains) as string)
    return `${some(0.03) ? 'refused' : 'user'}${++recipient}@${domain}`
  }
  const send = (atMs: number, tenant: number, count: number) =>
    plan.push({
      atMs,
      doing: {
        kind: 'send',
        tenant,
        recipients: Array.from({ length: count }, address),
        hasKey: some(0.6),
        test: some(0.04),
        times: some(0.1) ? 2 : 1,
      },
    })

  if (floods) {
    for (let n = 0; n < 22; n++) send(startMs, 0, 50)
    for (let n = 0; n < 8; n++) send(startMs, between(1, tenants.length - 1), 1)
  }
  /** Most are small, so that many can be played; some have hundreds of recipient domains, or thousands of messages. */
  const scale = pick([1, 1, 1, 1, 1, 1, 2, 2, 8]) as number
  const bursts = between(2, floods ? 4 : 4 + 2 * scale)
  for (let burst = 0; burst < bursts; burst++) {
    const atMs = startMs + Math.floor(random() ** 2 * (healsAtMs - startMs))
    const messages = Math.ceil(random() ** 3 * 14 * (floods ? 1 : scale))
    for (let n = 0; n < messages; n++) {
      send(atMs + Math.floor(random() * 3 * secondMs), between(0, tenants.length - 1), some(0.8) ? 1 : between(2, 8))
    }
  }

  const faults = some(0.1) ? 0 : between(2, 14)
  for (let n = 0; n < faults; n++) plan.push(drawStrike(chance, plan, healsAtMs))
  // Pauses the tenant right before it submits mail, so that there is mail to hold.
  const sends = plan.flatMap(({ atMs, doing }) => (doing.kind === 'send' ? [{ atMs, tenant: doing.tenant }] : []))
  for (let n = floods ? 0 : between(0, 2); n > 0; n--) {
    const { atMs, tenant } = pick(sends) as { atMs: number; tenant: number }
    plan.push({ atMs: atMs - 1, doing: { kind: 'pause tenant', tenant } })
    plan.push({ atMs: atMs + between(1, 20) * hourMs, doing: { kind: 'resume tenant', tenant } })
  }
  if (some(0.3)) {
    const atMs = startMs + random() * (healsAtMs - startMs)
    const domain = pick(domains) as string
    plan.push({ atMs, doing: { kind: 'pause destination', domain } })
    plan.push({ atMs: atMs + between(1, 10) * hourMs, doing: { kind: 'resume destination', domain } })
  }
  for (let n = between(0, 2); n > 0; n--)
    plan.push({ atMs: startMs + random() * (healsAtMs - startMs), doing: { kind: 'scale', count: between(1, 4) } })

  const sendLimit = !floods && some(0.4) ? between(20, 150) : null
  return {
    settings: {
      POSTRIDER_SEND_LIMIT: sendLimit === null ? 'unlimited' : String(sendLimit),
      POSTRIDER_RETRY_BASE_SECONDS: String(pick([900, 1800, 3600])),
      POSTRIDER_RETRY_MAX_SECONDS: String((pick([6, 6, 12]) as number) * 3600),
      POSTRIDER_MAX_ATTEMPTS: String(pick([3, 5, 8, 8, 18])),
    },
    leaseMs: pick([4000, 6000, 8000]) as number,
    processes: { api: between(1, 3), delivery: floods ? 1 : (pick([1, 1, 2, 2, 3, 4]) as number), webhooks: some(0.15) ? 2 : 1 },
    hosts,
    missing,
    nullMx,
    plan: plan.toSorted((a, b) => a.atMs - b.atMs),
    healsAtMs,
    sendLimit,
    floods,
    restoresAtMs: some(0.1) ? startMs + between(1, 30) * hourMs : null,
  }
}

/** Most faults strike under load, right after mail was submitted. */
function drawStrike({ random, pick }: SeededRandom, plan: readonly Planned[], healsAtMs: number): Planned {
  const sends = plan.filter(({ doing }) => doing.kind === 'send')
  const near = random() < 0.75 ? pick(sends) : undefined
  const atMs = near ? near.atMs + Math.floor(random() ** 2 * 2 * hourMs) : startMs + random() * (healsAtMs - startMs)
  const what = pick<StrikeKind>([
    'dies before',
    'dies inside',
    'dies after',
    'dies after',
    'freezes after',
    'freezes after',
    'answer lost',
    'answer lost',
    'database away',
    'partition',
    'disk full',
    'dies amid',
    'dies amid',
    'freezes amid',
    'freezes amid',
    'freezes amid',
    'dies at',
    'dies at',
    'machine dies',
    'restart',
    'clock',
  ]) as StrikeKind
  const doing: Doing = {
    kind: 'strike',
    what,
    victim: pick(['api', 'delivery', 'delivery', 'delivery', 'webhooks', 'housekeeping'] as const) as 'api',
    after: Math.floor(random() ** 2 * 40),
    forMs: pick([500, 3000, 12_000, 12_000, 20_000]) as number,
    place: pick([
      'accept-uncommitted',
      'accept-committed',
      'final-dot-answered',
      'outcomes-half-written',
      'outcomes-recorded',
      'shards-taken',
    ]) as string,
  }
  return { atMs: Math.min(atMs, healsAtMs - minuteMs), doing }
}

function drawHosts({ between, random, pick }: SeededRandom, count: number): Host[] {
  const some = (part: number) => random() < part
  const rarely = (chance: number, part = 0.25) => (some(part) ? chance * random() : 0)
  return Array.from({ length: count }, (_, n): Host => {
    const temper: Temper = {
      latencyMs: pick([1, 1, 5, 20, 80]) as number,
      finalMs: pick([1, 5, 30, 120, 700]) as number,
      pipelining: some(0.8),
      greylistMs: some(0.12) ? between(1, 60) * minuteMs : 0,
      maxConnections: some(0.1) ? between(1, 3) : 0,
      temporary: rarely(0.5),
      permanent: rarely(0.2),
      refusesConnection: rarely(0.4),
      silent: rarely(0.2, 0.15),
      dropsBeforeDot: rarely(0.3),
      dropsAfterDot: rarely(0.2),
      silentAfterDot: rarely(0.1, 0.15),
      dnsTrouble: rarely(0.4),
    }
    const times = (part: number): [number, number][] => {
      if (!some(part)) return []
      const from = startMs + random() * 3 * dayMs
      return [[from, from + random() ** 2 * 30 * hourMs]]
    }
    return {
      name: `mx.p${n}.example`,
      provider: `p${n}.example`,
      address: `11.0.${n >> 8}.${n & 255}`,
      domains: Array.from({ length: between(1, 3) }, (_, k) => `d${n}-${k}.example`),
      temper,
      away: times(0.2),
      hangs: times(0.15),
    }
  })
}
