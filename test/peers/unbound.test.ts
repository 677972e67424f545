/** DANE with a real validating resolver: unbound over zones that the test signs; one of them is broken afterwards. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeAuthority, tlsaOf } from '../support/certificate-authority.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { missingUnbound, startUnbound, type Unbound } from '../support/unbound.ts'

const missing = missingUnbound()

describe.skipIf(missing !== undefined)(`DANE by unbound${missing === undefined ? '' : ` (${missing})`}`, () => {
  const shown = makeAuthority('Own').issue({ names: ['whatever.test'] })
  const right = tlsaOf(shown, 3)
  const wrong = tlsaOf(makeAuthority('Other').issue({ names: ['x.test'] }), 3)
  let service: Service
  let unbound: Unbound
  let mx: FakeMx

  beforeAll(async () => {
    mx = await startFakeMx({ starttls: true, tls: { cert: shown.cert, key: shown.key } })
    const records = (name: string, tlsa: string) => [
      `${name} 300 IN MX 10 mx.${name}`,
      `mx.${name} 300 IN A 127.0.0.1`,
      `_${mx.port}._tcp.mx.${name} 300 IN TLSA ${tlsa}`,
    ]
    unbound = await startUnbound([
      { name: 'signed.test', signed: true, records: [...records('right', right), ...records('wrong', wrong), 'bare 300 IN A 127.0.0.1'] },
      {
        name: 'spoilt.test',
        signed: true,
        records: records('a', wrong),
        tamper: (text) => text.replace(/(TLSA\t3 1 1 )(\w)/, (_, head, digit) => `${head}${digit === '0' ? 1 : 0}`),
      },
      { name: 'unsigned.test', signed: false, records: records('a', wrong) },
    ])
    service = await startService({
      rateLimit: null,
      sendLimit: null,
      roles: ['delivery'],
      settings: { POSTRIDER_DNS: unbound.address, POSTRIDER_MX_PORT: String(mx.port), POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
    })
    await service.addDomain(service.tenantId, 'shop.test')
  })
  afterAll(async () => {
    await service?.stop()
    await unbound?.[Symbol.asyncDispose]()
    await mx?.close()
  })

  const send = async (domain: string) => {
    const body = { from: 'a@shop.test', to: [`ada@${domain}`], subject: 's', text: 't' }
    const { id } = (await service.call('POST', '/emails', { key: service.liveKey, body })).body.data as { id: string }
    let attempt: unknown
    const look = async () => {
      const { data } = (await service.call('GET', `/emails/${id}?expand=deliveries`, { key: service.liveKey })).body
      attempt = (data as { deliveries: unknown[] }).deliveries[0]
      return attempt !== undefined
    }
    await expect.poll(look, { timeout: 30_000 }).toBe(true)
    return attempt
  }

  test('a certificate that the signed zone names gets the mail', async () => {
    expect(await send('right.signed.test')).toMatchObject({
      status: 'sent',
      tls: { policy: 'dane', certificate: 'matches a TLSA record' },
    })
  })

  test('another does not', async () => {
    expect(await send('wrong.signed.test')).toMatchObject({ status: 'softfail', classification: 'tls_required', tls: { policy: 'dane' } })
  })

  test('a signed domain without records is sent to as ever', async () => {
    expect(await send('bare.signed.test')).toMatchObject({ status: 'sent', tls: { policy: 'opportunistic' } })
  })

  test('a record that was changed on its way lets the mail wait', async () => {
    expect(await send('a.spoilt.test')).toMatchObject({
      status: 'softfail',
      classification: 'tls_required',
      details: expect.stringContaining('SERVFAIL'),
    })
    expect(unbound.log()).toMatch(/validation failure/)
  })

  test('a zone that is not signed has no DANE', async () => {
    expect(await send('a.unsigned.test')).toMatchObject({ status: 'sent', tls: { policy: 'opportunistic' } })
  })
})
