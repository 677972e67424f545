/**
 * Generated requests of each vendor's API against one service: no request fails with 500, every refusal has the vendor's form, and nothing is half
 * sent. `npm run generated-requests` sends 50,000 to each; POSTRIDER_GENERATED_REQUESTS and POSTRIDER_GENERATED_SEED choose others.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SignedBy } from '../support/aws-signature.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { mailgun } from './generated/mailgun.ts'
import { postal } from './generated/postal.ts'
import { postmark } from './generated/postmark.ts'
import { resend } from './generated/resend.ts'
import { searchVendor } from './generated/search.ts'
import { sendgrid } from './generated/sendgrid.ts'
import { ses } from './generated/ses.ts'

const count = Number(process.env['POSTRIDER_GENERATED_REQUESTS'] ?? 300)
const firstSeed = Number(process.env['POSTRIDER_GENERATED_SEED'] ?? 24)
const withinMs = 30_000 + count * 60

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
})
afterAll(() => service.stop(), 600_000)

test.each([resend, ses, sendgrid, mailgun, postmark, postal])(
  'generated requests to $name are answered in its form, and store exactly the messages that the answers promise',
  async (vendor) => {
    const tenantId = await service.makeTenant(vendor.name)
    await service.addDomain(tenantId, 'shop.test')
    const body = { name: 'ses', type: 'api', mode: 'test', format: 'ses', tenantId }
    const signing = (await service.call('POST', '/credentials', { key: service.testKey, body })).body.data as SignedBy
    const keys = { test: await service.makeKey({ tenantId }), ses: signing }
    const searched = { baseUrl: `http://127.0.0.1:${service.port}`, db: service.db, tenantId, keys }
    const found = await searchVendor(vendor, searched, count, firstSeed)
    if (count > 1000) console.log(`${vendor.name}: ${count} requests, ${JSON.stringify(found)}`)
    expect(found.accepted).toBeGreaterThan(count / 10)
    expect(found.refused).toBeGreaterThan(count / 10)
    expect(found.messages).toBeGreaterThan(count / 20)
  },
  withinMs,
)
