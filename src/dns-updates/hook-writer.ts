/**
 * Writes records by a program of the operator, for DNS providers without RFC 2136: the changes arrive as JSON on its standard input. It runs
 * without a shell and without the settings of this process, for at most two minutes, and its exit code is the result.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Clock } from '#base'
import { completeAnswer, type DnsAnswer, type Resolver, type UpdateType } from '#net'
import { type FoundRecord, plainText, ttlS } from './plan-record-set.ts'
import type { ChangeResult, RecordWriter, SetChange } from './zone-writer.ts'

const maxMs = 120_000
/** Of its standard error. */
const maxOutputOctets = 2000
/** It gets no variable of this process: they may contain secrets. */
const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' }

/** Returns the problem, or undefined if the program ended with 0. */
export function runHook(program: string, input: string, clock: Clock, withinMs = maxMs): Promise<string | undefined> {
  return new Promise((resolve) => {
    // A group of its own, which is ended as a whole.
    const child: ChildProcess = spawn(program, [], { cwd: '/', env: environment, stdio: ['pipe', 'ignore', 'pipe'], detached: true })
    // Without a free file descriptor the child has no streams, only this event.
    child.on('error', (error: NodeJS.ErrnoException) => end(`cannot run ${program} (${error.code ?? error.message})`))
    let output = ''
    const end = (problem: string | undefined) => {
      cancel()
      child.stderr?.destroy()
      resolve(problem)
    }
    const cancel = clock.after(withinMs, () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
      } catch {
        // It has just ended.
      }
      end(`${program} did not end within ${withinMs / 1000} s`)
    })
    child.stderr?.setEncoding('utf8')
    child.stderr?.on('data', (text: string) => {
      if (output.length < maxOutputOctets) output = (output + text).slice(0, maxOutputOctets)
    })
    child.stderr?.on('error', () => undefined)
    // A program that does not read its input ends it.
    child.stdin?.on('error', () => undefined)
    child.on('exit', (code, signal) => {
      if (code === 0) return end(undefined)
      const last = output.trim().split('\n').at(-1)
      // Its last line may come after the exit.
      setImmediate(() => end(`${program} ended with ${signal ?? code}${last ? `: ${last}` : ''}`))
    })
    child.stdin?.end(input)
  })
}

export function openHookWriter(
  { program }: { program: string },
  { clock, resolver, hostname }: { clock: Clock; resolver: Resolver; hostname: string },
): RecordWriter {
  return {
    readsBack: false,
    problemOf: () => undefined,
    read: (name, type) => readByResolver(resolver, name, type),
    write: (changes) => write(program, changes, { clock, hostname }),
    close: () => undefined,
  }
}

async function write(
  program: string,
  changes: readonly SetChange[],
  { clock, hostname }: { clock: Clock; hostname: string },
): Promise<ChangeResult[]> {
  if (changes.length === 0) return []
  const listed = changes.flatMap(({ set: { name, type }, plan }) => [
    ...plan.remove.map(({ text: value }) => ({ action: 'remove', name, relativeName: relativeTo(name, hostname), type, ttl: ttlS, value })),
    ...plan.add.map((value) => ({ action: 'add', name, relativeName: relativeTo(name, hostname), type, ttl: ttlS, value })),
  ])
  const problem = await runHook(program, `${JSON.stringify({ version: 1, hostname, changes: listed })}\n`, clock)
  return changes.map((change) => ({ change, kind: problem === undefined ? 'done' : 'unknown', problem: problem ?? null }))
}

/** The name relative to the platform's name. */
const relativeTo = (name: string, parent: string) =>
  name === parent ? '@' : name.endsWith(`.${parent}`) ? name.slice(0, -parent.length - 1) : name

/** A record that cannot be written in this form is not one of Postrider's. */
function foundText(type: UpdateType, text: string): string {
  try {
    return plainText(type, text)
  } catch {
    return text
  }
}

async function readByResolver(resolver: Resolver, name: string, type: UpdateType): Promise<FoundRecord[] | { problem: string }> {
  const alias = await resolver.cname(name, 'fresh')
  if (alias.kind === 'trouble') return { problem: `DNS lookup failed (${alias.code})` }
  if (alias.kind === 'found') return alias.value.map((text) => ({ type: 'CNAME' as const, text: foundText('CNAME', text) }))
  const answer = await ask(resolver, name, type)
  if (answer.kind === 'trouble') return { problem: `DNS lookup failed (${answer.code})` }
  return answer.kind === 'found' ? answer.value.map((text) => ({ type, text })) : []
}

async function ask(resolver: Resolver, name: string, type: UpdateType): Promise<DnsAnswer<string[]>> {
  if (type === 'CNAME') return { kind: 'none' }
  if (type === 'TXT') return resolver.txt(name, 'fresh')
  if (type === 'MX') {
    const answer = await resolver.mx(name, 'fresh')
    const text = ({ priority, exchange }: { priority: number; exchange: string }) => foundText('MX', `${priority} ${exchange || '.'}`)
    return answer.kind === 'found' ? { kind: 'found', value: answer.value.map(text) } : answer
  }
  const answer = completeAnswer(await resolver.addresses(name, 'fresh'))
  if (answer.kind !== 'found') return answer
  const fits = answer.value.filter((address) => address.includes(':') === (type === 'AAAA'))
  return { kind: 'found', value: fits.map((address) => foundText(type, address)) }
}
