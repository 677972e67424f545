/**
 * CPU of a message from the API to the recipient's server, signed with RSA-2048, of all processes of the program and of PostgreSQL: against
 * Postfix with OpenDKIM, in turns. A ratio of CPU holds on any disk and with any other load of the machine.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { startServiceProcess } from '../test/support/spawned-service.ts'
import { load, median, startSink, typicalBody } from './helpers.ts'
import { missingPeer, startPostfix } from './postfix-peer.ts'
import { cpuByKind, kindOfProcess } from './process-figures.ts'

const rounds = 3
const messages = 8000
/** The CPU time of a message falls until some 15,000 have passed. */
const warmUp = 16_000
/** Before each round, as for the peer: V8 drops optimised code in the pause while the peer is measured. */
const roundWarmUp = 8000
const peerMessages = 3000
const peerWarmUp = 500
const messageOctets = 10_000
const connections = 64
/** Until request logs, counts and events of the last messages are written. */
const settleMs = 3000
const domain = 'shop.bench.test'

export interface Cost {
  /** Microseconds for a message; undefined without the peer. */
  ours: number
  peer: number | undefined
  ratio: number | undefined
  spread: [number, number] | undefined
  /** Ours, by kind of process. */
  parts: Record<string, number>
  /** Why there is no peer. */
  reason: string | undefined
}

export async function measureCost(environment: Record<string, string>, note: (text: string) => void): Promise<Cost> {
  const reason = missingPeer(true)
  const sink = await startSink()
  await using service = await startServiceProcess({ ...environment, POSTRIDER_RELAY: `smtp://127.0.0.1:${sink.port}` })
  await service.command('domain', 'add', domain, '--trust')
  const { serve, postgres } = await service.processes()
  const roots = [serve, postgres ?? 0]
  const body = typicalBody(`shop@${domain}`, 'ann@sink.test')
  const send = async (count: number) => {
    sink.reset()
    await load({ port: Number(new URL(service.url).port), key: service.liveKey, body, connections }, (sent) => sent >= count)
    await sink.until(count)
    await wait(settleMs)
  }
  const ours = async () => {
    await send(roundWarmUp)
    const before = cpuByKind(roots, kindOfProcess)
    await send(messages)
    return new Map([...cpuByKind(roots, kindOfProcess)].map(([kind, ms]) => [kind, ((ms - (before.get(kind) ?? 0)) / messages) * 1000]))
  }
  note(`  ${warmUp} messages to warm up`)
  await send(warmUp)
  const found: { parts: Map<string, number>; sum: number; peer: number | undefined }[] = []
  for (let round = 0; round < rounds; round++) {
    const peerFirst = round % 2 === 1 && reason === undefined ? await peerCost(sink) : undefined
    const parts = await ours()
    const peer = peerFirst ?? (reason === undefined ? await peerCost(sink) : undefined)
    const sum = [...parts.values()].reduce((total, one) => total + one, 0)
    found.push({ parts, sum, peer })
    note(`  round ${round + 1} of ${rounds}: ${Math.round(sum)} us${peer === undefined ? '' : ` against ${Math.round(peer)} us`}`)
  }
  await sink.stop()
  const kinds = [...new Set(found.flatMap(({ parts }) => [...parts.keys()]))]
  const ratios = found.flatMap(({ sum, peer }) => (peer === undefined ? [] : [sum / peer]))
  return {
    ours: median(found.map(({ sum }) => sum)),
    peer: reason === undefined ? median(found.map(({ peer }) => peer ?? 0)) : undefined,
    ratio: ratios.length > 0 ? median(ratios) : undefined,
    spread: ratios.length > 0 ? [Math.min(...ratios), Math.max(...ratios)] : undefined,
    parts: Object.fromEntries(kinds.map((kind) => [kind, median(found.map(({ parts }) => parts.get(kind) ?? 0))])),
    reason,
  }
}

async function peerCost(sink: Awaited<ReturnType<typeof startSink>>): Promise<number> {
  const postfix = await startPostfix(sink.port, true)
  try {
    const send = async (count: number) => {
      sink.reset()
      await postfix.feed(count, messageOctets)
      await sink.until(count)
    }
    const spent = () => [...cpuByKind(postfix.processes(), () => 'all').values()].reduce((sum, one) => sum + one, 0)
    await send(peerWarmUp)
    const before = spent()
    await send(peerMessages)
    return ((spent() - before) / peerMessages) * 1000
  } finally {
    await postfix.stop()
  }
}

export function costLines({ ours, peer, ratio, spread, parts, reason }: Cost): string[] {
  return [
    '| process | CPU for a message, us |',
    '|---|---|',
    ...Object.entries(parts).map(([kind, micros]) => `| ${kind} | ${Math.round(micros)} |`),
    `| all | ${Math.round(ours)} |`,
    `| Postfix with OpenDKIM | ${peer === undefined ? reason : Math.round(peer)} |`,
    '',
    ...(ratio && spread ? [`ratio: ${ratio.toFixed(2)} (${spread.map((one) => one.toFixed(2)).join(' to ')})`] : []),
  ]
}
