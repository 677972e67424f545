/** The external world for rows of the table: DNS, a peer for each row at its own address, and a correct server. */
import { connect } from 'node:net'
import { startBlackHole } from '../../support/black-hole.ts'
import { startThreadedDns } from '../../support/dns-thread.ts'
import { type FakeMx, startFakeMx } from '../../support/fake-mx.ts'
import { startMisbehavingPeer } from '../../support/misbehaving-peer.ts'
import type { Place, Row } from './row-type.ts'
import type { PeerCounters } from './verdict.ts'

/** A row and the peer that plays it. */
export interface Case extends PeerCounters, AsyncDisposable {
  row: Row
  place: Place
}

export interface Outside extends AsyncDisposable {
  /** At healthy.example. */
  readonly healthy: FakeMx
  /** The settings with which a service reaches this world. */
  readonly settings: Record<string, string>
  /** Adds a peer that plays the row, for its own domain. */
  add(row: Row): Promise<Case>
}

const unwelcomeIp = '127.0.7.2'
const busyIp = '127.0.7.3'
const blackHoleIp = '127.0.7.4'

export async function startOutside(): Promise<Outside> {
  const closing = new AsyncDisposableStack()
  const dns = closing.use(await startThreadedDns())
  const healthy = closing.use(await startFakeMx({ host: '127.0.7.1' }))
  const { port } = healthy
  closing.use(await startMisbehavingPeer({ connect: '554 5.7.1 no\r\n' }, { host: unwelcomeIp, port }))
  closing.use(await startMisbehavingPeer({ connect: '421 4.3.2 busy\r\n' }, { host: busyIp, port }))
  const blackHole6 = (await hasIpv6()) ? '::1' : blackHoleIp
  for (const ip of new Set([blackHoleIp, blackHole6])) closing.use(await startBlackHole(ip, port))
  dns.set('healthy.example', 'MX', ['10 mx.healthy.example'])
  dns.set('mx.healthy.example', 'A', ['127.0.7.1'])
  let added = 0

  return {
    healthy,
    settings: {
      POSTRIDER_DNS: dns.address,
      POSTRIDER_MX_PORT: String(port),
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128',
      POSTRIDER_HOSTNAME: 'house.test',
    },
    async add(row) {
      const nth = added++
      const last = `${Math.floor(nth / 250)}.${(nth % 250) + 1}`
      const domain = `r${nth}.example`
      const place = { domain, ip: `127.8.${last}`, deadIp: `127.9.${last}`, blackHoleIp, blackHole6, unwelcomeIp, busyIp }
      const zones = row.dns?.(place) ?? { [domain]: { MX: [`10 mx.${domain}`] }, [`mx.${domain}`]: { A: [place.ip] } }
      for (const [name, types] of Object.entries(zones))
        for (const [type, values] of Object.entries(types)) dns.set(name, type as 'A', values)
      row.prepare?.(dns, place)
      await dns.settled()
      return { row, place, ...(await startPeer(row, { host: place.ip, port })) }
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

async function startPeer(row: Row, where: { host: string; port: number }): Promise<PeerCounters & AsyncDisposable> {
  const { peer: given } = row
  if (given === 'nobody')
    return { connections: () => 0, taken: () => [], written: () => 0, keepsAll: true, [Symbol.asyncDispose]: async () => {} }
  const how = typeof given === 'function' ? given() : given
  if (how && 'rude' in how) {
    const rude = await startMisbehavingPeer(how.rude, where)
    return {
      connections: () => rude.connections,
      taken: () => [...rude.taken],
      written: () => rude.written,
      keepsAll: typeof how.rude.dot !== 'function',
      [Symbol.asyncDispose]: () => rude[Symbol.asyncDispose](),
    }
  }
  const mx = await startFakeMx({ ...how?.fake, ...where })
  return {
    connections: () => mx.connections,
    taken: () => mx.messages.map(({ from, octets }) => ({ from, content: octets.toString('latin1') })),
    written: () => 0,
    keepsAll: true,
    [Symbol.asyncDispose]: () => mx.close(),
  }
}

const hasIpv6 = () =>
  new Promise<boolean>((resolve) => {
    const socket = connect(1, '::1')
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
