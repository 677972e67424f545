/**
 * Memory and idle CPU of the compiled program with its embedded PostgreSQL: after the start, and after ten thousand emails.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { startServiceProcess } from '../test/support/spawned-service.ts'
import { compiledProgram } from './compiled-program.ts'
import { load, startSink, typicalBody } from './helpers.ts'
import { cpuByKind, kindOfProcess, memoryOf, processTree } from './process-figures.ts'

const emails = 10_000
const connections = 64
/** By then idle connections have ended, and processes have returned memory. */
const restMs = 150_000
/** An idle process collects garbage once in this time: as much work as it does in half a minute otherwise. */
const idleMs = 150_000
const domain = 'shop.bench.test'

export interface Footprint {
  when: string
  /** Mebibytes by kind of process. */
  memory: Record<string, number>
  memoryInAll: number
  /** Percent of one core. */
  idleCpu: number
}

export async function measureFootprint(environment: Record<string, string>, note: (text: string) => void): Promise<Footprint[]> {
  const program = compiledProgram(note)
  const sink = await startSink()
  await using service = await startServiceProcess({ ...environment, POSTRIDER_RELAY: `smtp://127.0.0.1:${sink.port}` }, program)
  const { serve, postgres } = await service.processes()
  const roots = [serve, postgres ?? 0]
  const measure = async (when: string): Promise<Footprint> => {
    note(`  resting ${(restMs + idleMs) / 1000} s ${when}`)
    await wait(restMs)
    const sum = () => [...cpuByKind(roots, kindOfProcess).values()].reduce((total, one) => total + one, 0)
    const before = sum()
    await wait(idleMs)
    const idleCpu = ((sum() - before) / idleMs) * 100
    const byKind = Map.groupBy(processTree(roots), ({ command }) => kindOfProcess(command))
    const memory = Object.fromEntries([...byKind].map(([kind, rows]) => [kind, memoryOf(rows.map(({ pid }) => pid))]))
    return { when, memory, memoryInAll: Object.values(memory).reduce((total, one) => total + one, 0), idleCpu }
  }
  const figures = [await measure('after the start')]
  await service.command('domain', 'add', domain, '--trust')
  const body = typicalBody(`shop@${domain}`, 'ann@sink.test')
  await load({ port: Number(new URL(service.url).port), key: service.liveKey, body, connections }, (sent) => sent >= emails)
  await sink.until(emails)
  figures.push(await measure(`after ${emails} emails`))
  await sink.stop()
  return figures
}

export function footprintLines(figures: readonly Footprint[]): string[] {
  const kinds = [...new Set(figures.flatMap(({ memory }) => Object.keys(memory)))]
  return [
    `| | ${kinds.join(' | ')} | all, MiB | idle, % of one core |`,
    `|---|${kinds.map(() => '---|').join('')}---|---|`,
    ...figures.map(
      ({ when, memory, memoryInAll, idleCpu }) =>
        `| ${when} | ${kinds.map((kind) => Math.round(memory[kind] ?? 0)).join(' | ')} | ${Math.round(memoryInAll)} | ${idleCpu.toFixed(2)} |`,
    ),
  ]
}
