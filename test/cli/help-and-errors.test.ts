/** The command line for a newcomer: help, wrong words, and the lists that show the ids for other commands. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openIds, openSecrets, readConfig, systemClock, systemRandom } from '#base'
import { createKey } from '#credentials'
import { pauseTenant } from '#delivery'
import type { Installation } from '#installation'
import { createOrganisation, openTenants } from '#tenants'
import { openWebhooks, organisationWide } from '#webhooks'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { runHere } from '../support/run-command.ts'
import { loopbackPost, sendingConfig, sendingSecrets } from '../support/webhook-sender-parts.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  const facts = { name: 'Test', secretFingerprint: 'f', nowMs: clock.nowMs(), ids }
  await database.db.transaction((tx) => createOrganisation(tx, facts))
})
afterAll(() => database.close())

const ids = openIds(systemRandom)
const clock = systemClock

/** `text` is the standard output, `said` the standard error. */
const ran = (...words: string[]) => ranWith({}, ...words)

async function ranWith(settings: Record<string, string>, ...words: string[]): Promise<{ code: number; text: string; said: string }> {
  const printed: string[] = []
  const said: string[] = []
  const error = vi.spyOn(console, 'error').mockImplementation((line) => void said.push(String(line)))
  const service: Installation = {
    config: readConfig({ POSTRIDER_HOSTNAME: 'vm', ...settings }),
    db: database.db,
    clock,
    ids,
    random: systemRandom,
    secrets: openSecrets('a secret for tests only', systemRandom),
    version: 'test',
  }
  const code = await runHere(words, { withInstallation: (work) => work(service), print: (text) => void printed.push(text) })
  error.mockRestore()
  return { code, text: printed.join('\n'), said: said.join('\n') }
}

describe('help', () => {
  test.each([[], ['--help'], ['-h'], ['help']])('of everything lists every command: %s', async (...words) => {
    const { code, text } = await ran(...words)
    expect([code, text]).toEqual([0, expect.stringMatching(/ {2}serve .*\n[^]* {2}queue flush .*\n[^]*--help for the details/)])
  })

  test.each([
    ['tenant', '--help'],
    ['help', 'tenant'],
    ['tenant', '-h'],
  ])('of a first word lists the commands that begin with it: %s %s', async (...words) => {
    const { code, text } = await ran(...words)
    expect(code).toBe(0)
    const names = ['create', 'list', 'show', 'delete', 'pause', 'resume']
    expect(text.match(/^ {2}\w+ \w+/gm)).toEqual(names.map((name) => `  tenant ${name}`))
  })

  test.each([
    ['queue', 'pause', '--help'],
    ['queue', 'pause', '-h'],
    ['help', 'queue', 'pause'],
  ])('of a command is its own: %s %s %s', async (...words) => {
    expect(await ran(...words)).toMatchObject({ code: 0, text: expect.stringMatching(/^postrider queue pause --destination/) })
  })

  test.each(['--version', 'version'])('%s prints the version', async (word) => {
    expect(await ran(word)).toMatchObject({ code: 0, text: 'test' })
    expect(JSON.parse((await ran(word, '--json')).text)).toEqual({ version: 'test', node: process.versions.node })
  })
})

describe('a wrong call', () => {
  test.each([
    ['frobnicate', 'unknown command "frobnicate". Run postrider --help for all commands'],
    ['queue fulsh', 'unknown command "queue fulsh". Available: queue pause, queue resume, queue flush, queue release, queue cancel, queue'],
    ['limits', 'limits needs a further word: limits set, limits list'],
    ['key make --key svc_live_secret', 'unknown command "key make". Available: key create, key list'],
    ['tenant pause', 'tenant pause needs ID\n\npostrider tenant pause ID [--reason TEXT] [--json]'],
    ['tenant pause nobody', 'no such tenant: nobody\nRun postrider tenant list for all ids'],
    ['queue --tenant nobody', 'no such tenant: nobody\nRun postrider tenant list for all ids'],
    ['queue flush --tenant nobody', 'no such tenant: nobody\nRun postrider tenant list for all ids'],
    ['limits set --key 999 --rate 5', 'no such credential\nRun postrider limits set --help for usage'],
    [
      'key create --type live --name a.b',
      'validation_error: --name must match ^[a-zA-Z0-9_-]{1,50}$\nRun postrider key create --help for usage',
    ],
    ['webhook add ftp://shop.example/', 'webhook_url_not_allowed: URL must start with'],
    ['suppression add nobody', 'invalid_email_format: ADDRESS is not'],
    ['limits set --tenant a --rate 5', '--rate: a tenant has no rate, only every key or one key'],
    ['limits set --send none', '--send must be a whole number of at least 1, unlimited, or default'],
    ['member update ann@example.com --role boss', '--role must be one of owner, admin, viewer'],
    ['member remove bob@example.com', 'no such member'],
    ['explain a b', 'explain takes only EMAIL_ID'],
    ['email show nope', 'not_found: no such email\nRun postrider email list to find it'],
    ['key create --type smtp', 'validation_error: --tenant is required'],
    ['transport share old 150', 'PERCENT: "150" is not a whole number from 0 to 100'],
    ['tenant list --frob', "Unknown option '--frob'\n\npostrider tenant list [--url URL --key KEY] [--json]"],
    ['domain list --tenant nobody', 'not_found: --tenant: no such tenant: nobody\nRun postrider tenant list for all ids'],
  ])('prints on standard error its fault and the valid choices: %s', async (words, wrong) => {
    const { code, text, said } = await ran(...words.split(' '))
    expect([code, text]).toEqual([2, ''])
    expect(said.startsWith(wrong), said).toBe(true)
  })

  test('with a file that is not there names the file, and no call of the system', async () => {
    expect(await ran('backup', '/nowhere/file')).toMatchObject({ code: 1, said: '/nowhere/file.unfinished: no such file or directory' })
  })
})

describe('a list', () => {
  test('of tenants, domains and keys has the ids that other commands take', async () => {
    const made = JSON.parse((await ran('tenant', 'create', '--name', 'Second shop', '--json')).text) as { id: string }
    await pauseTenant(database.db, made.id, { reason: 'they spam', by: 'operator' }, clock.nowMs())
    const { tenants } = JSON.parse((await ran('tenant', 'list', '--json')).text)
    expect(tenants).toMatchObject([
      { name: 'Default', isDefault: true, pauseReason: null },
      { id: made.id, name: 'Second shop', status: 'active', pauseReason: 'they spam' },
    ])
    expect((await ran('tenant', 'list')).text).toContain(`${made.id}  Second shop, paused (they spam)`)

    expect((await ran('domain', 'list', '--tenant', made.id)).text).toMatch(/^no sending domains/)
    await ran('domain', 'add', 'shop.example.com', '--tenant', made.id)
    await ran('domain', 'add', 'lab.example.com', '--trust')
    expect((await ran('domain', 'list')).text).toMatch(
      /\d+ +shop\.example\.com {2}not verified, tenant \w+\n\d+ +lab\.example\.com {2}verified/,
    )
    const { domains } = JSON.parse((await ran('domain', 'list', '--tenant', made.id, '--json')).text)
    expect(domains).toMatchObject([{ name: 'shop.example.com', tenantId: made.id, verified: false }])

    const wanted = { mode: 'live', name: 'first', tenantId: null, permissions: ['emails:send'] } as const
    const { id, key } = await database.db.transaction((tx) => createKey(tx, wanted, { nowMs: clock.nowMs(), ids }))
    const { text } = await ran('key', 'list')
    expect(text).toMatch(new RegExp(`^${id} +first {2}live key …${key.slice(-4)}, emails:send, never used`))
    expect(text).not.toContain(key)
    expect((await ran('key', 'list', '--tenant', made.id)).text).toMatch(/^this tenant has no keys/)
  })

  test('of webhooks has their ids, and which are disabled, and no secret', async () => {
    const deps = { db: database.db, clock, ids, random: systemRandom, secrets: sendingSecrets, config: sendingConfig, version: 'test' }
    const webhooks = openWebhooks({ ...deps, tenants: openTenants(deps), post: loopbackPost() })
    expect((await ran('webhook', 'list')).text).toMatch(/^the organisation has no webhooks/)
    const { webhook, secret } = await webhooks.create(organisationWide, { name: 'orders', url: 'http://127.0.0.1/a', enabled: false })
    const { text } = await ran('webhook', 'list')
    expect(text).toBe(`${String(webhook.id).padEnd(12)}orders  http://127.0.0.1/a, all events, disabled`)
    const json = (await ran('webhook', 'list', '--json')).text
    expect(JSON.parse(json)).toMatchObject({
      webhooks: [{ id: String(webhook.id), tenantId: null, enabled: false, disabledReason: 'requested' }],
    })
    expect(json).not.toContain(secret)
  })

  test('of limits has the set values', async () => {
    expect((await ran('limits', 'list')).text).toMatch(/^no limits set/)
    const [{ id }] = JSON.parse((await ran('tenant', 'list', '--json')).text).tenants
    await ran('limits', 'set', '--rate', '20', '--send', 'unlimited')
    await ran('limits', 'set', '--send', '500', '--tenant', id)
    expect(JSON.parse((await ran('limits', 'list', '--json')).text)).toEqual({
      limits: [
        { scope: 'organisation', ratePerSecond: 20, sendPerHour: 'unlimited' },
        { scope: `tenant:${id}`, ratePerSecond: null, sendPerHour: 500 },
      ],
    })
    expect((await ran('limits', 'list')).text).toMatch(
      new RegExp(`^organisation +20 requests per second {2}unlimited emails per hour\ntenant ${id} +500 emails per hour$`),
    )
  })

  test('of limits is empty after each set value was taken back', async () => {
    const [{ id }] = JSON.parse((await ran('tenant', 'list', '--json')).text).tenants
    const wanted = { mode: 'live', name: 'limited', tenantId: null, permissions: ['emails:send'] } as const
    const { id: key } = await database.db.transaction((tx) => createKey(tx, wanted, { nowMs: clock.nowMs(), ids }))
    await ran('limits', 'set', '--rate', '20', '--send', 'unlimited')
    await ran('limits', 'set', '--rate', '5', '--send', '7', '--key', String(key))
    await ran('limits', 'set', '--send', '500', '--tenant', id)
    const set = { scope: 'organisation', rate: 'default', send: null }
    expect(JSON.parse((await ran('limits', 'set', '--rate', 'default', '--json')).text)).toEqual(set)
    await ran('limits', 'set', '--rate', 'default', '--key', String(key))
    expect(JSON.parse((await ran('limits', 'list', '--json')).text).limits).toEqual([
      { scope: `key:${key}`, ratePerSecond: null, sendPerHour: 7 },
      { scope: 'organisation', ratePerSecond: null, sendPerHour: 'unlimited' },
      { scope: `tenant:${id}`, ratePerSecond: null, sendPerHour: 500 },
    ])
    await ran('limits', 'set', '--send', 'default')
    await ran('limits', 'set', '--send', 'default', '--key', String(key))
    expect(await ran('limits', 'set', '--send', 'unlimited', '--tenant', id)).toMatchObject({ code: 0 })
    expect((await ran('limits', 'list')).text).toMatch(/^no limits set/)
  })

  test('of members has the changed role, and no removed member', async () => {
    await ran('member', 'add', 'ann@example.com')
    expect(await ran('member', 'update', 'ann@example.com', '--role', 'admin')).toMatchObject({ code: 0, text: 'ann@example.com (admin)' })
    expect((await ran('member', 'list')).text).toBe('ann@example.com  admin')
    expect(await ran('member', 'remove', 'ann@example.com')).toMatchObject({ code: 0, text: 'ann@example.com is removed' })
    expect((await ran('member', 'list')).text).toMatch(/^no members/)
  })

  test('of a new member has no sign-in link that the service would refuse', async () => {
    const settings = {
      POSTRIDER_OIDC_ISSUER: 'https://login.example.com',
      POSTRIDER_OIDC_CLIENT_ID: 'postrider',
      POSTRIDER_OIDC_CLIENT_SECRET: 'secret',
      POSTRIDER_PASSWORD_SIGN_IN: 'off',
    }
    const byProvider = expect.stringContaining('signs in with the identity provider, with this address')
    expect(await ranWith(settings, 'member', 'add', 'bea@example.com')).toMatchObject({ code: 0, text: byProvider })
    expect(JSON.parse((await ranWith(settings, 'member', 'reset', 'bea@example.com', '--json')).text)).toMatchObject({ signInUrl: null })
    expect((await ran('member', 'reset', 'bea@example.com')).text).toContain('/sign-in/')
    await ran('member', 'remove', 'bea@example.com')
  })

  test('of the records to publish warns when they rest on a name that the internet does not know', async () => {
    expect((await ran('dns')).text).toMatch(/\n\nThe records use "vm", which is not a public host name\. First set POSTRIDER_HOSTNAME/)
  })
})
