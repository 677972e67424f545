/**
 * The mail servers of the simulated world, and its DNS. Each server has a temper drawn from the seed, with good and bad times. It records
 * each message before its reply. In the healed world all servers are healthy and refuse only permanently refused mail.
 */
import type { SeededRandom } from '#crash-test'
import type { Resolver } from '#net'
import type { Dial } from '#smtp'
import { openWire, type Wire } from './in-memory-connection.ts'
import type { Ledger } from './ledger.ts'
import type { Life, Time } from './virtual-time.ts'

export interface Temper {
  /** From a command to its reply. */
  latencyMs: number
  finalMs: number
  pipelining: boolean
  /** A new recipient is deferred until this long after its first attempt. */
  greylistMs: number
  /** Further connections are refused with 421; 0 means unlimited. */
  maxConnections: number
  /** Probabilities for every message (or connection), while the world is not healed. */
  temporary: number
  permanent: number
  refusesConnection: number
  silent: number
  dropsBeforeDot: number
  dropsAfterDot: number
  silentAfterDot: number
  /** Probability that a DNS query for its name fails. */
  dnsTrouble: number
}

export interface Host {
  name: string
  provider: string
  address: string
  domains: string[]
  temper: Temper
  /** Wall-clock intervals without any answer, from and to. */
  away: [number, number][]
  /** Intervals in which it accepts the connection and then stays silent. */
  hangs: [number, number][]
}

export interface World {
  hosts: readonly Host[]
  /** Domains that do not exist, and domains that accept no mail. */
  missing: readonly string[]
  nullMx: readonly string[]
  healed: boolean
}

const nobody = /^refused/

export function openOutside(
  world: World,
  { chance, time, self, ledger }: { chance: SeededRandom; time: Time; self: Life; ledger: Ledger },
) {
  const byDomain = new Map(world.hosts.flatMap((host) => host.domains.map((domain) => [domain, host] as const)))
  const byName = new Map(world.hosts.map((host) => [host.name, host]))
  const byAddress = new Map(world.hosts.map((host) => [host.address, host]))
  const clock = time.clockOf(self)
  const happens = (part: number) => !world.healed && part > 0 && chance.random() < part
  const isWithin = (times: readonly [number, number][]) =>
    !world.healed && times.some(([from, to]) => time.wallMs >= from && time.wallMs < to)
  const firstTries = new Map<string, number>()
  let sessions = 0

  const trouble = { kind: 'trouble', code: 'SERVFAIL' } as const
  const resolver: Resolver = {
    async mx(name) {
      if (world.missing.includes(name)) return happens(0.3) ? trouble : { kind: 'nxdomain' }
      if (world.nullMx.includes(name)) return { kind: 'found', value: [{ exchange: '', priority: 0 }] }
      const host = byDomain.get(name)
      if (!host) return { kind: 'nxdomain' }
      if (happens(host.temper.dnsTrouble)) return trouble
      return { kind: 'found', value: [{ exchange: host.name, priority: 10 }] }
    },
    async addresses(name) {
      const host = byName.get(name)
      if (!host) return { kind: 'none' }
      return happens(host.temper.dnsTrouble) ? trouble : { kind: 'found', value: [host.address] }
    },
    txt: async () => ({ kind: 'none' }),
    cname: async () => ({ kind: 'none' }),
    ptr: async () => ({ kind: 'none' }),
  }

  const dialOf =
    (life: Life): Dial =>
    ({ host: address }) => {
      const wire = openWire(life)
      const host = byAddress.get(address)
      clock.after(1, () => {
        if (!host || isWithin(host.away) || happens(host.temper.refusesConnection)) wire.refuse('ECONNREFUSED')
        else converse(host, wire, life)
      })
      return wire.socket
    }

  const converse = (host: Host, wire: Wire, life: Life) => {
    const { temper } = host
    const session = ++sessions
    ledger.connected(host, session, life)
    let unread = ''
    let content: string | undefined
    let recipients: string[] = []
    let isStill = isWithin(host.hangs) || happens(temper.silent)
    /** Replies leave in the order of the commands. */
    let lastAtMs = 0
    const say = (text: string, afterMs = temper.latencyMs, then?: () => void) => {
      const atMs = Math.max(time.monotonicMs + afterMs, lastAtMs)
      lastAtMs = atMs
      clock.after(atMs - time.monotonicMs, () => {
        if (!wire.isOpen) return
        wire.say(`${text}\r\n`)
        then?.()
      })
    }
    const hangUp = () => clock.after(Math.max(1, lastAtMs - time.monotonicMs), () => wire.hangUp())

    const onRecipient = (address: string) => {
      const key = `${host.name} ${address}`
      const since = firstTries.get(key) ?? time.wallMs
      firstTries.set(key, since)
      if (nobody.test(address)) return say('550 5.1.1 no such user')
      if (!world.healed && time.wallMs - since < temper.greylistMs) return say('451 4.7.1 greylisted, come again later')
      if (happens(temper.permanent)) {
        ledger.refused(address)
        return say('550 5.1.1 no such user (by chance)')
      }
      if (happens(temper.temporary)) return say('451 4.3.0 try again later')
      recipients.push(address)
      say('250 2.1.5 ok')
    }

    const onContent = (text: string) => {
      const to = recipients
      recipients = []
      if (happens(temper.temporary / 2)) return say('451 4.3.0 not now', temper.finalMs)
      const dropped = happens(temper.dropsAfterDot)
      // Half of the servers that lose the connection have taken the message.
      if (dropped && chance.random() < 0.5) return hangUp()
      const id = ledger.taken({ host, recipients: to, text, session, life, isAnswerLost: dropped })
      if (dropped) return hangUp()
      if (happens(temper.silentAfterDot)) {
        ledger.answerLost(id)
        isStill = true
        return
      }
      say(`250 2.0.0 taken as ${id}`, temper.finalMs, () => ledger.answered(id))
    }

    const onLine = (line: string) => {
      const verb = line.slice(0, 4).toUpperCase()
      const address = /<([^>]*)>/.exec(line)?.[1] ?? ''
      if (verb === 'EHLO') say(temper.pipelining ? `250-${host.name}\r\n250-8BITMIME\r\n250 PIPELINING` : `250 ${host.name}`)
      else if (verb === 'MAIL') {
        recipients = []
        ledger.began(host, life)
        say('250 2.1.0 ok')
      } else if (verb === 'RCPT') onRecipient(address)
      else if (verb === 'DATA') {
        if (recipients.length === 0) return say('503 5.5.1 no valid recipients')
        if (happens(temper.dropsBeforeDot)) return hangUp()
        content = ''
        say('354 go on')
      } else if (verb === 'QUIT') {
        say('221 2.0.0 bye', 1, () => wire.hangUp())
      } else say(verb === 'RSET' || verb === 'HELO' ? '250 2.0.0 ok' : '500 5.5.2 what?')
    }

    const read = () => {
      while (!isStill) {
        if (content !== undefined) {
          const end = unread.startsWith('.\r\n') ? 0 : unread.indexOf('\r\n.\r\n')
          if (end < 0) return
          const text = unread.slice(0, end)
          unread = unread.slice(end === 0 ? 3 : end + 5)
          content = undefined
          onContent(text)
          continue
        }
        const end = unread.indexOf('\r\n')
        if (end < 0) return
        const line = unread.slice(0, end)
        unread = unread.slice(end + 2)
        onLine(line)
      }
    }

    wire.open({
      said(octets) {
        unread += octets.toString('latin1')
        read()
      },
      hungUp: () => ledger.disconnected(host, session),
    })
    if (isStill) return
    const many = temper.maxConnections > 0 && ledger.openAt(host) > temper.maxConnections
    if (many && !world.healed) {
      say('421 4.7.0 too many connections')
      hangUp()
    } else say(`220 ${host.name} ESMTP`)
  }

  return { resolver, dialOf }
}
