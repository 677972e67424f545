import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '#base'
import type { Resolver } from '#net'
import { openHookWriter, runHook } from './hook-writer.ts'
import { planSet } from './plan-record-set.ts'

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
