import type * as childProcess from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '#base'
import type { Resolver } from '#net'
import { openHookWriter, runHook } from './hook-writer.ts'
import { planSet } from './plan-record-set.ts'

const descriptors = vi.hoisted(() => ({ areUsedUp: false }))
vi.mock('node:child_process', async (original) => {
  const real = await original<typeof childProcess>()
  // As spawn does with EMFILE: a child without streams, and its error soon.
  const withoutStreams = () => {
    const child = new real.ChildProcess()
    process.nextTick(() => child.emit('error', Object.assign(new Error('spawn EMFILE'), { code: 'EMFILE' })))
    return child
  }
  return { ...real, spawn: (...given: Parameters<typeof real.spawn>) => (descriptors.areUsedUp ? withoutStreams() : real.spawn(...given)) }
})

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postrider-hook-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function hook(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, `#!/bin/sh\n${text}\n`)
  chmodSync(path, 0o755)
  return path
}

const none = async (): Promise<{ kind: 'none' }> => ({ kind: 'none' })
const resolver: Resolver = { mx: none, addresses: none, txt: none, cname: none, ptr: none }

test('a program gets the changes as JSON, and no variable of this process', async () => {
  const program = hook('good', `env > ${folder}/environment; cat > ${folder}/input`)
  const writer = openHookWriter({ program }, { clock: systemClock, resolver, hostname: 'host.example' })
  const set = { name: 'spf.host.example', type: 'TXT' as const, wanted: ['v=spf1 ~all'] }
  const plan = planSet(set, ['v=spf1 -all'], [{ type: 'TXT', text: 'v=spf1 -all' }])
  if (plan.kind !== 'change') throw new Error('the plan is not a change')
  expect(await writer.write([{ set, plan }])).toMatchObject([{ kind: 'done', problem: null }])
  const common = { name: 'spf.host.example', relativeName: 'spf', type: 'TXT', ttl: 3600 }
  expect(JSON.parse(readFileSync(join(folder, 'input'), 'utf8'))).toEqual({
    version: 1,
    hostname: 'host.example',
    changes: [
      { action: 'remove', ...common, value: 'v=spf1 -all' },
      { action: 'add', ...common, value: 'v=spf1 ~all' },
    ],
  })
  const environment = readFileSync(join(folder, 'environment'), 'utf8')
  expect(environment).not.toMatch(/POSTRIDER|VITEST|NODE_|HOME=/)
  expect(environment.split('\n').filter((line) => /^(PATH|LANG)=/.test(line))).toHaveLength(2)
})

test('a program that fails, is absent, or reads no input is a problem with its last line', async () => {
  const large = `${'x'.repeat(500_000)}\n`
  expect(await runHook(hook('bad', 'echo first >&2; echo "no such zone" >&2; exit 3'), large, systemClock)).toMatch(
    /ended with 3(: no such zone)?$/,
  )
  expect(await runHook(join(folder, 'absent'), '{}', systemClock)).toMatch(/cannot run .*absent \(ENOENT\)/)
  expect(await runHook(hook('deaf', 'exit 0'), large, systemClock)).toBeUndefined()
})

test('a program for which no file descriptor is free is a problem', async () => {
  descriptors.areUsedUp = true
  onTestFinished(() => void (descriptors.areUsedUp = false))
  expect(await runHook('/bin/true', '{}', systemClock)).toBe('cannot run /bin/true (EMFILE)')
})

test('unusual records are read as they are, and conflict with the wanted one', async () => {
  const conflictOf = async (type: 'MX' | 'CNAME', answers: Partial<Resolver>) => {
    const writer = openHookWriter(
      { program: '/bin/true' },
      { clock: systemClock, resolver: { ...resolver, ...answers }, hostname: 'a.test' },
    )
    const found = await writer.read('rp.a.test', type)
    if ('problem' in found) return found
    return planSet({ name: 'rp.a.test', type, wanted: [type === 'MX' ? '10 a.test' : 'a.test'] }, [], found)
  }
  const mx = (exchange: string) => async () => ({ kind: 'found' as const, value: [{ exchange, priority: 0 }] })
  const cname = async () => ({ kind: 'found' as const, value: ['host\\..a.test'] })
  const conflict = (text: string) => ({ kind: 'conflict', problem: expect.stringContaining(text) })
  expect(await conflictOf('MX', { mx: mx('') })).toEqual(conflict('another MX record stands at the name: 0 .'))
  expect(await conflictOf('MX', { mx: mx('host\\..a.test') })).toEqual(conflict('another MX record stands at the name: 0 host'))
  expect(await conflictOf('CNAME', { cname })).toEqual(conflict('another CNAME record stands at the name: host'))
  expect(await conflictOf('MX', { cname })).toEqual(conflict('a CNAME record to host'))
})

test('an address is not read from an incomplete answer', async () => {
  const addresses = async () => ({ kind: 'found' as const, value: ['2001:db8::9'], lostCode: 'SERVFAIL' })
  const writer = openHookWriter({ program: '/bin/true' }, { clock: systemClock, resolver: { ...resolver, addresses }, hostname: 'a.test' })
  expect(await writer.read('out.a.test', 'A')).toEqual({ problem: 'DNS lookup failed (SERVFAIL)' })
})

test('a program that does not end is ended with its children', async () => {
  const program = hook('slow', `sleep 600 & echo $! > ${folder}/child; sleep 600`)
  const begunMs = systemClock.monotonicMs()
  expect(await runHook(program, '{}', systemClock, 300)).toContain('did not end within 0.3 s')
  expect(systemClock.monotonicMs() - begunMs).toBeLessThan(5000)
  const child = Number(readFileSync(join(folder, 'child'), 'utf8'))
  const isGone = () => {
    try {
      return readFileSync(`/proc/${child}/stat`, 'utf8').includes(') Z ')
    } catch {
      return true
    }
  }
  await expect.poll(isGone).toBe(true)
})
