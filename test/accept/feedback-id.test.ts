/** The header Feedback-ID: by the operator's pattern, never from a caller's line ends or colons, and not in the way of the caller's own. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '#base'
import { type Service, startService } from '../support/in-process-service.ts'

const sent = { from: 'shop@simulator.test', to: ['a@simulator.test'], subject: 's', text: 't' }

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, settings: { POSTRIDER_FEEDBACK_ID: '{tag}:{domain}:{tenant}:ExampleCo' } })
})
afterAll(() => service.stop())

test('is built from tag, domain and tenant, and a header of the caller has precedence', async () => {
  const headerOf = async (changes: object) => {
    const made = await service.call('POST', '/emails', { key: service.testKey, body: { ...sent, ...changes } })
    const { id } = made.body.data as { id: string }
    const shown = await service.call('GET', `/emails/${id}?expand=headers`, { key: service.testKey })
    return (shown.body.data as { headers: Record<string, string> }).headers['Feedback-ID']
  }
  expect(await headerOf({ tag: 'order receipts: é' })).toBe(`order-receipts-:simulator.test:${service.tenantId}:ExampleCo`)
  expect(await headerOf({})).toBe(`none:simulator.test:${service.tenantId}:ExampleCo`)
  expect(await headerOf({ headers: { 'feedback-id': 'mine:Sender' } })).toBeUndefined()
})

test('is added to raw messages and signed, except where a signature or a header of the caller would be affected', async () => {
  const headersOf = async (fields: string) => {
    const message = `From: shop@simulator.test\r\nTo: a@simulator.test\r\nSubject: s\r\n${fields}\r\nt\r\n`
    const body = { from: sent.from, to: sent.to, rawMessage: Buffer.from(message).toString('base64') }
    const made = await service.call('POST', '/emails/raw', { key: service.testKey, body })
    const { id } = made.body.data as { id: string }
    const shown = await service.call('GET', `/emails/${id}?expand=headers,raw`, { key: service.testKey })
    const { headers, rawMessage } = shown.body.data as { headers: Record<string, string>; rawMessage: string }
    return { headers, signedNames: /h=([^;]*);/.exec(Buffer.from(rawMessage, 'base64').toString())?.[1]?.replace(/\s/g, '').split(':') }
  }
  const added = await headersOf('')
  expect(added.headers['Feedback-ID']).toBe(`none:simulator.test:${service.tenantId}:ExampleCo`)
  expect(added.signedNames?.filter((name) => name === 'feedback-id')).toEqual(['feedback-id'])
  const own = await headersOf('Feedback-ID: mine:Sender\r\n')
  expect(own.headers['Feedback-ID']).toBe('mine:Sender')
  const signature = (names: string) => `DKIM-Signature: v=1; a=rsa-sha256; d=x.test; s=s; h=${names}; bh=AA==; b=AA==\r\n`
  expect((await headersOf(signature('from:subject'))).headers['Feedback-ID']).toBe(`none:simulator.test:${service.tenantId}:ExampleCo`)
  const covered = await headersOf(signature('from:Feedback-ID'))
  expect(covered.headers['Feedback-ID']).toBeUndefined()
})

test('is off by default, and a pattern without a constant last part is refused at the start', async () => {
  await using plain = await startService()
  const made = await plain.call('POST', '/emails', { key: plain.testKey, body: sent })
  const { id } = made.body.data as { id: string }
  const shown = await plain.call('GET', `/emails/${id}?expand=headers`, { key: plain.testKey })
  expect(Object.keys((shown.body.data as { headers: object }).headers)).not.toContain('Feedback-ID')
  for (const pattern of ['{tag}', 'a:b:c:d:Sender', 'a b:Sender', '{tag}:abcd', '{user}:Sender'])
    expect(() => readConfig({ POSTRIDER_FEEDBACK_ID: pattern }), pattern).toThrow('POSTRIDER_FEEDBACK_ID')
})
