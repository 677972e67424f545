/** The whole loop with a real mail server: it accepts the message, cannot deliver it, and its DSN comes back to the return path. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readEvents, startOfLog } from '#events'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { freePort } from '../support/spawned-service.ts'

const withinMs = 20_000

export interface BounceServer extends AsyncDisposable {
  log(): string
}

export interface BounceLoop {
  name: string
  /** The reason why the server is not installed here. */
  missing: string | undefined
  /**
   * `ports`: the ports on 127.0.0.1 to which the server relays the mail of these domains. `local.example` is its own domain, without users.
   */
  start: (port: number, ports: Record<string, number>) => Promise<BounceServer>
  /** Matches its log once it has sent a delay warning. */
  warned: RegExp
  /** Enhanced status codes of its DSNs by the recipient's domain, where they differ from the reply's code. */
  statuses?: Record<string, string>
}

interface Attempt {
  status: string
  classification: string | null
  smtpEnhancedCode: string | null
}

export function testBounceLoop({ name, missing, start, warned, statuses = {} }: BounceLoop): void {
  describe.skipIf(missing !== undefined)(`what ${name} takes and cannot deliver${missing === undefined ? '' : ` (${missing})`}`, () => {
    let service: Service
    let server: BounceServer
    /** The next hop, and its refusals by domain. */
    let next: FakeMx
    const refusals: Record<string, string> = {
      'full.example': '552 5.2.2 mailbox full',
      'size.example': '552 5.3.4 message size exceeds the limit of this mailbox',
      'loop.example': '554 5.4.6 mail for loop.example loops back to myself',
      'later.example': '451 4.3.2 try again later',
    }
    beforeAll(async () => {
      next = await startFakeMx({ script: ({ stage, argument }) => (stage === 'rcpt' ? refusals[argument.split('@')[1] ?? ''] : undefined) })
      const port = await freePort()
      service = await startService({
        rateLimit: null,
        sendLimit: null,
        roles: ['delivery', 'inbound'],
        settings: { POSTRIDER_RELAY: `smtp://127.0.0.1:${port}` },
      })
      const toNext = Object.fromEntries(Object.keys(refusals).map((domain) => [domain, next.port]))
      server = await start(port, { ...toNext, 'rp.house.test': service.ports.smtp })
      await service.addDomain(service.tenantId, 'shop.example.com')
    })
    afterAll(async () => {
      await service?.stop()
      await server?.[Symbol.asyncDispose]()
      await next?.close()
    })

    const call = async <T>(path: string) => (await service.call('GET', path, { key: service.liveKey })).body.data as T
    const statusOf = async (id: string) => (await call<{ status: string }>(`/emails/${id}`)).status
    const send = async (to: string) => {
      const body = { from: 'shop@shop.example.com', to: [to], subject: 'Your order', text: 'x' }
      return ((await service.call('POST', '/emails', { key: service.liveKey, body })).body.data as { id: string }).id
    }
    const suppressionOf = async (address: string) =>
      (await call<{ reason: string | null }>(`/tenants/${service.tenantId}/suppressions/${address}`)).reason

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
      expect(deliveries[1]).toMatchObject({ smtpEnhancedCode: statuses[to.split('@')[1] ?? ''] ?? status, remoteHost: 'mx.local.example' })
      if (Array.isArray(classifications)) expect(classifications).toContain(deliveries[1]?.classification)
      expect(await suppressionOf(to)).toBe(reason)
      const events = await readEvents(service.db, startOfLog, 1000)
      expect(events.filter((one) => one.emailId === id && one.kind === 'MessageBounced')).toHaveLength(1)
    })

    test('stays sent while there is only a warning that it takes longer', async () => {
      const to = 'ann@later.example'
      const id = await send(to)
      const arrived = () => warned.test(server.log())
      await expect.poll(arrived, { timeout: withinMs, interval: 200 }).toBe(true)
      expect(await statusOf(id)).toBe('sent')
      expect(await suppressionOf(to)).toBeNull()
    })
  })
}
