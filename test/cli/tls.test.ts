/** The operator's TLS commands, with a database of the test's own. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, openSecrets, readConfig, systemClock, systemRandom } from '#base'
import { readEvents, startOfLog } from '#events'
import type { Installation } from '#installation'
import { saveSentReport } from '../../src/tls-reports/sent-reports.ts'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { runHere } from '../support/run-command.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
})
afterAll(() => database.close())

async function ran(...words: string[]): Promise<{ code: number; text: string }> {
  const printed: string[] = []
  const service: Installation = {
    config: readConfig({}),
    db: database.db,
    clock: systemClock,
    ids: openIds(systemRandom),
    random: systemRandom,
    secrets: openSecrets('a secret for tests only', systemRandom),
    version: 'test',
  }
  const code = await runHere(words, { withInstallation: (work) => work(service), print: (text) => void printed.push(text) })
  return { code, text: printed.join('\n') }
}

describe('postrider tls', () => {
  test('requires TLS for a domain, lists it, and waives it; the event log records it', async () => {
    expect((await ran('tls', 'list')).text).toBe('no domain requires TLS')
    expect(JSON.parse((await ran('tls', 'require', 'Partner.example', '--json')).text)).toEqual({
      domain: 'partner.example',
      certificate: 'valid',
      required: true,
    })
    expect((await ran('tls', 'require', 'bücher.example', '--any-certificate')).text).toBe(
      'mail for xn--bcher-kva.example now requires TLS with any certificate',
    )
    expect((await ran('tls', 'require', 'partner.example', '--any-certificate')).code).toBe(0)
    expect(JSON.parse((await ran('tls', 'list', '--json')).text)).toMatchObject({
      required: [
        { domain: 'partner.example', certificate: 'any' },
        { domain: 'xn--bcher-kva.example', certificate: 'any' },
      ],
    })
    expect((await ran('tls', 'remove', 'partner.example')).text).toBe('TLS is no longer required for partner.example')
    expect((await ran('tls', 'remove', 'partner.example')).text).toBe('TLS was not required for partner.example')
    // An event becomes readable once no older transaction of the server is open, those of other tests included.
    const actions = async () => (await readEvents(database.db, startOfLog, 100, null)).map((event) => [event.kind, event.data])
    await expect.poll(actions, { timeout: 20_000 }).toEqual([
      ['OperatorAction', { action: 'require tls', recipientDomain: 'partner.example', certificate: 'valid' }],
      ['OperatorAction', { action: 'require tls', recipientDomain: 'xn--bcher-kva.example', certificate: 'any' }],
      ['OperatorAction', { action: 'require tls', recipientDomain: 'partner.example', certificate: 'any' }],
      ['OperatorAction', { action: 'remove tls requirement', recipientDomain: 'partner.example' }],
    ])
  })

  test('lists the TLS reports that were sent, the newest first', async () => {
    expect((await ran('tls', 'reports')).text).toBe('no TLS report was sent')
    const common = { domain: 'b.example', tries: 1, nextAt: new Date(), successful: 40, failed: 2 }
    await saveSentReport(database.db, { ...common, day: '2026-11-20', destination: 'mailto:a@b.example', state: 'sent', problem: null })
    const away = { state: 'waiting' as const, problem: 'HTTP status 503' }
    await saveSentReport(database.db, { ...common, ...away, day: '2026-11-21', destination: 'https://b.example/' })
    expect((await ran('tls', 'reports')).text.split('\n')).toEqual([
      expect.stringMatching(/^2026-11-21 b\.example +waiting +40 successful, +2 failed +https:\/\/b\.example\/ \(HTTP status 503\)$/),
      expect.stringMatching(/^2026-11-20 b\.example +sent +40 successful, +2 failed +mailto:a@b\.example$/),
    ])
    expect(JSON.parse((await ran('tls', 'reports', '--json')).text)).toMatchObject({
      reports: [{ day: '2026-11-21', tries: 1 }, { state: 'sent' }],
    })
  })

  test.each([
    ['tls', 'require', 'no domain'],
    ['tls', 'require'],
    ['tls', 'remove', 'a@b'],
  ])('%s %s %s gets its fault explained', async (...words) => {
    expect((await ran(...words)).code).toBe(2)
  })
})
