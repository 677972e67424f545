/**
 * OpenSMTPD and aiosmtpd as third-party receivers, in plain cases: the accepted content equals the sent content, and Postrider understands
 * their refusals.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { missingAiosmtpd, type ReceivedMessage, startAiosmtpd } from '../support/aiosmtpd.ts'
import { startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { missingOpensmtpd, startOpensmtpd } from '../support/opensmtpd.ts'
import { freePort } from '../support/spawned-service.ts'
import { startTestDns } from '../support/test-dns.ts'

const maxOctets = 200_000
const many = 30

interface Receiver extends AsyncDisposable {
  taken(): readonly ReceivedMessage[]
}
type Where = { host: string; port: number; maxOctets: number }

const receivers = [
  {
    name: 'OpenSMTPD',
    missing: missingOpensmtpd(),
    refused: 'ann@elsewhere.example',
    isSecure: false,
    start: async (where: Where): Promise<Receiver> => {
      const next = await startFakeMx()
      const server = await startOpensmtpd({ ...where, domain: 'peer.example', next: next.port })
      return {
        taken: () => next.messages,
        async [Symbol.asyncDispose]() {
          await server[Symbol.asyncDispose]()
          await next.close()
        },
      }
    },
  },
  {
    name: 'aiosmtpd',
    missing: missingAiosmtpd(),
    refused: 'nobody@peer.example',
    isSecure: true,
    start: (where: Where): Promise<Receiver> => startAiosmtpd(where),
  },
]

describe.each(receivers)('$name', ({ missing, refused, isSecure, start }) => {
  describe.skipIf(missing !== undefined)(`takes the mail of Postrider${missing === undefined ? '' : ` (${missing})`}`, () => {
    const closing = new AsyncDisposableStack()
    let service: Service
    let receiver: Receiver

    beforeAll(async () => {
      const [host, port] = ['127.0.6.21', await freePort()]
      receiver = closing.use(await start({ host, port, maxOctets }))
      const domains = ['peer.example', 'elsewhere.example']
      const dns = closing.use(await startTestDns(Object.fromEntries(domains.map((domain) => [domain, { MX: ['10 mx.peer.example'] }]))))
      dns.set('mx.peer.example', 'A', [host])
      service = closing.use(
        await startService({
          rateLimit: null,
          sendLimit: null,
          roles: ['delivery'],
          settings: { POSTRIDER_DNS: dns.address, POSTRIDER_MX_PORT: String(port), POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
        }),
      )
      await service.addDomain(service.tenantId, 'shop.example.com')
    })
    afterAll(() => closing.disposeAsync())

    const send = async (emails: readonly object[]) => {
      const answer = await service.call('POST', '/emails/batch', { key: service.liveKey, body: { from: 'a@shop.example.com', emails } })
      expect([answer.status, answer.body.error]).toEqual([200, undefined])
      return (answer.body.data as { results: { id: string }[] }).results.map(({ id }) => id)
    }
    const read = async (id: string) => {
      const { body } = await service.call('GET', `/emails/${id}?expand=deliveries,raw`, { key: service.liveKey })
      return body.data as { status: string; to: string; rawMessage: string; deliveries: { sentWithSsl: boolean }[] }
    }
    const ended = async (id: string, status: string) => {
      await expect.poll(async () => (await read(id)).status, { timeout: 20_000, interval: 100 }).toBe(status)
      return read(id)
    }

    test('as it was sent, octet for octet: dots, 8 bits, long and empty lines, an attachment', async () => {
      const text = ['.', '..', '.hidden', '', 'Grüße aus Köln', 'x'.repeat(3000), '', '.'].join('\r\n')
      const attachments = [
        { filename: 'a.bin', contentType: 'application/octet-stream', content: Buffer.alloc(90_000, 7).toString('base64') },
      ]
      const ids = await send([
        { to: ['ann@peer.example'], subject: 'Schöne Grüße', text },
        { to: ['bob@peer.example'], subject: 's', text, html: '<p>Grüße</p>', attachments },
      ])
      for (const id of ids) {
        const { to, rawMessage, deliveries } = await ended(id, 'sent')
        expect(deliveries).toMatchObject([{ sentWithSsl: isSecure }])
        const find = () => receiver.taken().find(({ recipients }) => recipients.includes(to))
        await expect.poll(find, { timeout: 20_000 }).toBeDefined()
        // The receiver's own header fields come before it.
        const sent = Buffer.from(rawMessage, 'base64')
        expect(find()?.octets.subarray(-sent.length).equals(sent)).toBe(true)
      }
    })

    test(`${many} messages, each once`, async () => {
      const to = Array.from({ length: many }, (_, at) => `n${at}@peer.example`)
      const ids = await send(to.map((one) => ({ to: [one], subject: 'One of many', text: 'Hello' })))
      for (const id of ids) await ended(id, 'sent')
      const arrived = () =>
        receiver
          .taken()
          .flatMap(({ recipients }) => recipients)
          .filter((one) => to.includes(one))
          .sort()
      await expect.poll(arrived, { timeout: 20_000 }).toEqual([...to].sort())
    })

    test('or gives the reason of a refusal: an unknown recipient, a message that is too large', async () => {
      const [noUser = '', large = ''] = await send([
        { to: [refused], subject: 's', text: 't' },
        { to: ['cid@peer.example'], subject: 's', text: 'x\r\n'.repeat(maxOctets / 2) },
      ])
      expect(await ended(noUser, 'hardfail')).toMatchObject({ deliveries: [{ code: 550 }] })
      expect(await ended(large, 'hardfail')).toMatchObject({
        deliveries: [{ classification: 'message_too_large', smtpEnhancedCode: '5.3.4' }],
      })
    })
  })
})
