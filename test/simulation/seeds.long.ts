/** The long form of the simulation: seeds with every guarantee kept, and every mutant of the engine noticed within fifty seeds. */
import { spawn } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { mutants } from './mutants.ts'

const seeds = Number(process.env.POSTRIDER_SIMULATION_SEEDS ?? 12)
const maxSeeds = 50
/** The seeds from which these mutants are noticed soon. Changes of the engine move them. */
const firstSeeds: Record<string, number> = {
  'unfair order': 51,
  'lease not fenced': 200,
  'hold not released': 9,
  'completion without epoch check': 9,
}

/** Runs in a separate process, because an engine is loaded only once. */
function play(...given: string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, ['test/simulation/cli.ts', ...given])
  let output = ''
  child.stdout.on('data', (octets) => {
    output += octets
  })
  child.stderr.on('data', (octets) => {
    output += octets
  })
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })))
}

test.concurrent(`${seeds} seeds break no promise`, { timeout: 60_000 + seeds * 60_000 }, async () => {
  const { code, output } = await play('--seeds', String(seeds), '--from', '100')
  expect(output).toContain('broken: none')
  expect(code).toBe(0)
})

describe('an engine that breaks a promise is noticed within 50 seeds:', () => {
  test.concurrent.each(Object.keys(mutants))('%s', { timeout: maxSeeds * 60_000 }, async (name) => {
    const { code, output } = await play(
      '--mutant',
      name,
      '--seeds',
      String(maxSeeds),
      '--from',
      String(firstSeeds[name] ?? 1),
      '--until-broken',
    )
    expect(output).not.toContain('the simulation broke')
    expect(output).toMatch(/broken: \d/)
    expect(code).toBe(1)
  })
})
