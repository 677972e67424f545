/** A whole loop with a real server: Postfix takes the message, cannot deliver it, and its report comes back to the return path. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type House, startHouse } from '../support/house.ts'
import { missingPostfix, type Postfix, startPostfix } from '../support/postfix.ts'

const withinMs = 15_000
const missing = missingPostfix()

describe.skipIf(missing !== undefined)(`what Postfix takes and cannot deliver${missing === undefined ? '' : ` (${missing})`}`, () => {
  let house: House
  let postfix: Postfix
  /** Where Postfix passes mail on to, and what is said there. */
  let next: FakeMx
  const refusals: Record<string, string> = {
    'full.example': '552 5.2.2 mailbox full',
    'size.example': '552 5.3.4 message size exceeds the limit of this mailbox',
    'loop.example': '554 5.4.6 mail for loop.example loops back to myself',
    'later.example': '451 4.3.2 try again later',
  }
  beforeAll(async () => {
    next = await startFakeMx({ script: ({ stage, argument }) => (stage === 'rcpt' ? refusals[argument.split('@')[1] ?? ''] : undefined) })
    const toNext = `smtp:[127.0.0.1]:${next.port}`
    postfix = await startPostfix('local.example', {
      ...Object.fromEntries(Object.keys(refusals).map((domain) => [domain, toNext])),
      'rp.house.test': `smtp:[127.0.0.1]:${house.ports.smtp}`,
    })
    house = await startHouse({
      rateLimit: null,
      sendLimit: null,
      roles: ['delivery', 'inbound'],
      settings: { POSTRIDER_RELAY: `smtp://127.0.0.1:${postfix.port}` },
    })
    await house.addDomain(house.tenantId, 'shop.example.com')
  })
  afterAll(async () => {
    await house.stop()
    await postfix[Symbol.asyncDispose]()
    await next.close()
  })

  interface Attempt {
    status: string
    classification: string | null
    smtpEnhancedCode: string | null
  }
  const call = async <T>(path: string) => (await house.call('GET', path, { key: house.liveKey })).body.data as T
  const statusOf = async (id: string) => (await call<{ status: string }>(`/emails/${id}`)).status
  const send = async (to: string) => {
    const body = { from: 'shop@shop.example.com', to: [to], subject: 'Your order', text: 'x' }
    return ((await house.call('POST', '/emails', { key: house.liveKey, body })).body.data as { id: string }).id
  }
  const suppressionOf = async (address: string) =>
    (await call<{ reason: string | null }>(`/tenants/${house.tenantId}/suppressions/${address}`)).reason

  test.each([
    ['an unknown user', 'nobody-here@local.example', '5.1.1', ['invalid_recipient', 'no_mailbox'], 'bounce'],
    ['a full mailbox', 'ann@full.example', '5.2.2', ['mailbox_full'], null],
    ['a message that is too large', 'ann@size.example', '5.3.4', ['message_too_large'], null],
    ['a loop', 'ann@loop.example', '5.4.6', expect.anything(), null],
  ])('ends as bounced for %s', async (_, to, status, classifications, reason) => {
    const id = await send(to)
    await expect.poll(() => statusOf(id), { timeout: withinMs, interval: 100 }).toBe('bounced')
    const { deliveries } = await call<{ deliveries: Attempt[] }>(`/emails/${id}/deliveries`)
    expect(deliveries.map((one) => one.status)).toEqual(['sent', 'bounced'])
    expect(deliveries[1]).toMatchObject({ smtpEnhancedCode: status, remoteHost: 'mx.local.example' })
    if (Array.isArray(classifications)) expect(classifications).toContain(deliveries[1]?.classification)
    expect(await suppressionOf(to)).toBe(reason)
  })

  test('stays sent while Postfix only warns that it takes longer', async () => {
    const to = 'ann@later.example'
    const id = await send(to)
    const warned = () =>
      /sender delay notification/.test(postfix.log()) && /to=<b[a-z2-7]{51}@rp\.house\.test>.*status=sent/.test(lastPart())
    const lastPart = () => postfix.log().slice(postfix.log().indexOf('sender delay notification'))
    await expect.poll(warned, { timeout: withinMs, interval: 200 }).toBe(true)
    expect(await statusOf(id)).toBe('sent')
    expect(await suppressionOf(to)).toBeNull()
  })
})
