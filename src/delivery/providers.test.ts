import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openProviders, type Providers } from './providers.ts'

let folder: string
let providers: Providers
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'providers-'))
  const file = join(folder, 'rules.json')
  const rules = [
    { name: 'partner', mx: ['mx.partner.example'], connections: 2, rate: 5 },
    { name: 'neighbour', mx: ['neighbour.example'], connections: 3 },
    { name: 'deeper', mx: ['deep.neighbour.example'], connections: 4 },
  ]
  await writeFile(file, JSON.stringify({ providers: rules }))
  providers = openProviders(file)
})
afterAll(() => rm(folder, { recursive: true }))

describe('the provider of a mail server', () => {
  test.each([
    ['mx.partner.example', 'partner.example', 'partner'],
    ['a.mx.partner.example', 'partner.example', 'partner'],
    ['mail.partner.example', 'partner.example', 'partner.example'],
    ['mx.neighbour.example', 'neighbour.example', 'neighbour'],
    ['mx.deep.neighbour.example', 'neighbour.example', 'deeper'],
    ['d1.a.ess.barracuda.com', 'barracuda.com', 'barracuda'],
    ['aspmx.l.google.com', 'google.com', 'gmail'],
    ['mx1.small.example', 'small.example', 'small.example'],
  ])('%s is named by the deepest rule, else by its domain %s', (host, domain, name) => {
    expect(providers.of(host, domain)).toMatchObject({ name, isNamed: name !== domain })
  })

  test('has the numbers of its rule, else the usual ones', () => {
    expect(providers.of('mx.partner.example', 'partner.example')).toMatchObject({ connections: 2, rate: 5 })
    expect(providers.of('mail.partner.example', 'partner.example')).toMatchObject({ connections: 20, rate: null })
  })
})
