/**
 * A week of mail of an agency with six customers, for screenshots: live mail through a relay that answers as mailbox providers do, bounces and
 * complaints that arrive by SMTP, opens and clicks, healthy and failing webhooks, suppressions, and test mail.
 */
import { createTransport } from 'nodemailer'
import { expect, vi } from 'vitest'
import { type Clock, openIds, silentLog, systemClock, systemRandom } from '#base'
import { ensureUpcomingPartitions } from '#housekeeping'
import { countOutcomes, openProviderNames } from '#reputation'
import { lateReport } from '#simulator'
import { writeTrackingEvents } from '#tracking'
import { openPayloadBodies, startSending } from '#webhooks'
import { invite, useLink } from '../dashboard/signed-in-browser.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import type { Service, ServiceOptions } from '../support/in-process-service.ts'
import { receiveReport } from '../support/received-report.ts'
import { greetedClient, sendIncoming } from '../support/send-incoming.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { loopbackPost, sendingConfig } from '../support/webhook-sender-parts.ts'
import { startDashboardService } from './chromium.ts'
import { orderTemplate, welcomeTemplate } from './realistic-templates.ts'

const hourMs = 3_600_000
const hoursOfWeek = 7 * 24
/** Recipients per request. */
const maxTogether = 20

/** Runs at the machine's rate, and begins a week ago. */
class MovedClock implements Clock {
  #movedMs = -hoursOfWeek * hourMs
  nowMs(): number {
    return systemClock.nowMs() + this.#movedMs
  }
  monotonicMs(): number {
    return systemClock.monotonicMs()
  }
  after(delayMs: number, action: () => void): () => void {
    return systemClock.after(delayMs, action)
  }
  move(byMs: number): void {
    this.#movedMs = Math.min(0, this.#movedMs + byMs)
  }
}

const customers = [
  ['Northwind Books', 'northwind.example', 8],
  ['Harbour Tickets', 'harbour-tickets.example', 5],
  ['Meadow Clinic', 'meadow-clinic.example', 3],
  ['Fjord Outdoor', 'fjord.example', 6],
  ['Ledgerly', 'ledgerly.example', 4],
] as const
const subjects = [
  ['Your order {n} is on its way', 'orders'],
  ['Reset your password', 'password-reset'],
  ['Receipt for invoice {n}', 'receipts'],
  ['Your tickets for Saturday', 'tickets'],
  ['Appointment reminder: Tuesday, 9:40', 'reminders'],
  ['Confirm your email address', 'sign-up'],
  ['Your weekly summary', 'summary'],
] as const
const people = 'ann bruno carla dmitri emre farah goran hanna ilse jonas keiko lars maya noor otto priya quinn rosa sven tara'.split(' ')
const domains = ['gmail.example', 'outlook.example', 'yahoo.example', 'proton.example', 'webmail.example', 'school.example']

const replies: Record<string, string> = {
  gone: '550-5.1.1 The email account that you tried to reach does not exist. Please try\n550-5.1.1 double-checking the address for typos\n550 5.1.1 https://support.example/NoSuchUser',
  full: '452 4.2.2 The recipient is over quota, try again later',
  spam: '550 5.7.1 Message rejected as spam by content filter',
}
const recipientOf = (n: number) => {
  const part = n % 83 === 7 ? 'gone' : n % 131 === 11 ? 'full' : n % 311 === 31 ? 'spam' : people[n % people.length]
  return `${part}.${100 + n}@${domains[(n * 7) % domains.length]}`
}

export interface RealisticData extends AsyncDisposable {
  service: Service
  clock: Clock
  /** Values for the placeholders of paths, such as `emailId`. */
  ids: Record<
    'emailId' | 'bouncedId' | 'testId' | 'domainId' | 'webhookId' | 'requestId' | 'templateId' | 'tenantId' | 'receivedId',
    string
  >
}

export async function makeRealisticData(emails: number, wish: ServiceOptions = {}): Promise<RealisticData> {
  const clock = new MovedClock()
  let greylisted = 0
  const relay = await startFakeMx({
    script: ({ stage, argument }) => {
      if (stage !== 'rcpt') return undefined
      if (argument.includes('maya.') && greylisted++ < 40) return '451 4.7.1 Greylisted, please try again in a few minutes'
      return replies[/^<?(\w+)\./.exec(argument)?.[1] ?? '']
    },
  })
  // One of the three records of a domain is published.
  const dns = await startTestDns({
    'news.agency.example': { TXT: ['v=spf1 include:spf.mail.agency.example ~all'] },
    'reader.example': { TXT: ['v=spf1 ip4:127.0.0.1 -all'] },
    '_dmarc.reader.example': { TXT: ['v=DMARC1; p=reject'] },
  })
  const receiver = await startReceiver()
  receiver.answer = (response, { path }) => {
    response.statusCode = path === '/broken' ? 500 : path === '/gone' ? 410 : 200
    response.end(path === '/broken' ? '{"error":"relation \\"orders\\" does not exist"}' : '{"ok":true}')
  }
  const service = await startDashboardService({
    ...wish,
    clock,
    roles: ['delivery', 'inbound'],
    sendLimit: 5000,
    settings: {
      POSTRIDER_RELAY: `smtp://127.0.0.1:${relay.port}`,
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
      POSTRIDER_HOSTNAME: 'mail.agency.example',
      POSTRIDER_DNS: dns.address,
      ...wish.settings,
    },
  })
  const sending = await startSending({
    db: service.db,
    clock,
    ids: openIds(systemRandom),
    log: silentLog,
    secrets: service.secrets,
    post: loopbackPost(),
    bodies: openPayloadBodies({ db: service.db }),
    config: sendingConfig,
    version: 'test',
    processId: 'realistic',
  })
  const week = new Week(service, clock, relay, dns)
  await week.setUp(receiver)
  await week.pass(emails)
  const ids = await week.finish()
  return {
    service,
    clock,
    ids,
    async [Symbol.asyncDispose]() {
      await sending.stop()
      await service.stop()
      await relay.close()
      await dns.close()
      await receiver[Symbol.asyncDispose]()
    },
  }
}

class Week {
  readonly #service: Service
  readonly #clock: MovedClock
  readonly #relay: FakeMx
  readonly #dns: TestDns
  readonly #tenants: { id: string; domain: string; weight: number; key: string }[] = []
  #domainId = ''
  #webhookId = ''
  #sent = 0
  #reported = 0

  constructor(service: Service, clock: MovedClock, relay: FakeMx, dns: TestDns) {
    this.#service = service
    this.#clock = clock
    this.#relay = relay
    this.#dns = dns
  }

  async #post<Made>(path: string, body: object, key = this.#service.liveKey): Promise<Made> {
    const answer = await this.#service.call('POST', path, { key, body })
    expect(answer.status, answer.text).toBeLessThan(300)
    return answer.body.data as Made
  }

  async setUp(receiver: Receiver): Promise<void> {
    const service = this.#service
    await ensureUpcomingPartitions(service.db, this.#clock.nowMs())
    this.#tenants.push({ id: service.tenantId, domain: 'agency.example', weight: 4, key: '' })
    for (const [name, domain, weight] of customers) this.#tenants.push({ id: await service.makeTenant(name), domain, weight, key: '' })
    for (const one of this.#tenants) {
      await service.addDomain(one.id, one.domain)
      const wanted = { name: 'production', type: 'api', mode: 'live', permissions: ['emails:send'] }
      one.key = (await this.#post<{ key: string }>(`/tenants/${one.id}/credentials`, wanted)).key
    }
    await this.#post('/credentials', { name: 'checkout', type: 'api', mode: 'live', permissions: ['emails:send', 'emails:read'] })
    await this.#post('/credentials', { name: 'ci', type: 'api', mode: 'test' })
    this.#domainId = String((await this.#post<{ id: number }>('/domains', { name: 'news.agency.example' })).id)
    await this.#post('/tracking', { domainId: Number(this.#domainId), name: 'click' })
    const hook = (name: string, path: string, of: number) =>
      this.#post<{ id: string }>('/webhooks', {
        name,
        url: `${receiver.url}${path}`,
        ...(path === '/gone' ? { events: ['MessageBounced', 'MessageDeliveryFailed'] } : { allEvents: true }),
        tenantId: this.#tenants[of]?.id,
      })
    await hook('Order system', '/orders', 1)
    await hook('Ticket shop', '/gone', 2)
    this.#webhookId = (await hook('Warehouse', '/broken', 4)).id
    await hook('Reporting', '/reporting', 5)
  }

  /** Sends the mail of a week, hour by hour on the last day. */
  async pass(emails: number): Promise<void> {
    const rounds = [...Array.from({ length: 18 }, () => 8), ...Array.from({ length: 24 }, () => 1)]
    const atHour = (hour: number) => 0.25 + Math.max(0, Math.sin(((hour - 6) / 24) * 2 * Math.PI))
    const weights = rounds.map((hours, index) => hours * (0.6 + ((index * 37) % 10) / 12) * (hours > 1 ? 0.7 : atHour(index - 18)))
    const sum = weights.reduce((total, one) => total + one, 0)
    for (const [index, hours] of rounds.entries()) {
      await this.#round(Math.max(2, Math.round((emails * (weights[index] ?? 0)) / sum)))
      this.#clock.move(hours * hourMs)
      await ensureUpcomingPartitions(this.#service.db, this.#clock.nowMs())
    }
  }

  async #round(emails: number): Promise<void> {
    for (let left = emails; left > 0; left -= maxTogether) {
      const n = this.#sent
      const tenant = this.#tenants[Math.floor((((n * 13) % 97) / 97) * this.#tenants.length)] ?? this.#tenants[0]
      const [subject, tag] = subjects[(n / maxTogether) % subjects.length] ?? subjects[0]
      const to = Array.from({ length: Math.min(left, maxTogether) }, () => recipientOf(this.#sent++))
      const email = {
        from: `${tenant?.domain.split('.')[0]} <hello@${tenant?.domain}>`,
        to,
        subject: subject.replace('{n}', String(41_000 + n)),
        html: `<h1>${subject.replace('{n}', String(41_000 + n))}</h1><p>Thank you. <a href="https://${tenant?.domain}/orders/${n}">View it</a></p>`,
        text: 'Thank you.',
        tag,
        metadata: { order_id: String(41_000 + n) },
      }
      await this.#post('/emails', email, tenant?.key)
    }
    await this.#untilTried()
    await this.#report()
  }

  #untilTried(): Promise<boolean> {
    const pending = async () =>
      (await this.#service.call('GET', '/emails?status=pending&perPage=1', { key: this.#service.liveKey })).body.total ?? 0
    return vi.waitUntil(async () => (await pending()) === 0, { timeout: 60_000, interval: 100 })
  }

  /** Some of the delivered messages bounce late, annoy, or are opened. */
  async #report(): Promise<void> {
    const service = this.#service
    const inbox = createTransport({ host: '127.0.0.1', port: service.ports.smtp, secure: false, ignoreTLS: true })
    const fresh = this.#relay.messages.slice(this.#reported)
    this.#reported = this.#relay.messages.length
    for (const [index, { from, recipients, octets }] of fresh.entries()) {
      const n = this.#reported + index
      const kind = n % 71 === 5 ? 'bounce' : n % 613 === 9 ? 'complaint' : undefined
      if (!kind) continue
      const messageId = /^message-id:\s*(\S+)/im.exec(octets.toString('latin1'))?.[1] ?? ''
      const returnPath = from.replace(/[<>]/g, '')
      const raw = lateReport(kind, {
        recipient: (recipients[0] ?? '').replace(/[<>]/g, ''),
        returnPath,
        messageId,
        atMs: this.#clock.nowMs(),
      })
      await inbox.sendMail({ envelope: { from: '', to: [returnPath] }, raw }).catch(() => undefined)
    }
    inbox.close()
    const { data } = (await service.call('GET', '/emails?perPage=60&status=sent', { key: service.liveKey })).body
    const delivered = (data as { id: string; tenantId: string }[]).filter((_, index) => index % 3 !== 0)
    const atMs = this.#clock.nowMs()
    await writeTrackingEvents(
      service.db,
      delivered.map(({ id, tenantId }, index) => ({
        kind: index % 4 === 0 ? ('click' as const) : ('open' as const),
        tenantId,
        emailId: id,
        url: index % 4 === 0 ? 'https://northwind.example/orders/41233' : '',
        token: 'token',
        at: new Date(atMs),
        ipAddress: `203.0.113.${index % 200}`,
        userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148',
        isHead: false,
        isPrefetch: false,
        id: openIds(systemRandom).label(20),
        isOneOfSeveral: false,
        isAfterHead: false,
      })),
    )
  }

  /** The records of the domains that send, with several policies of DMARC; one domain has none. */
  async #publishRecords(): Promise<void> {
    const service = this.#service
    const { domains } = (await service.call('GET', '/domains', { key: service.liveKey })).body.data as {
      domains: { id: number; name: string }[]
    }
    for (const [index, { domain }] of this.#tenants.entries()) {
      const id = domains.find(({ name }) => name === domain)?.id
      const { dnsRecords } = (await service.call('GET', `/domains/${id}`, { key: service.liveKey })).body.data as {
        dnsRecords: Record<string, { fullName: string; type: 'TXT' | 'CNAME'; value: string } | undefined>
      }
      for (const kind of ['spf', 'dkim', 'dkimEd25519', 'returnPath']) {
        const record = dnsRecords[kind]
        if (record) this.#dns.set(record.fullName, record.type, [record.value])
      }
      const policy = ['none', 'reject', undefined, 'quarantine', 'none', 'reject'][index]
      if (policy) this.#dns.set(`_dmarc.${domain}`, 'TXT', [`v=DMARC1; p=${policy}`])
      await this.#post(`/domains/${id}/verify`, {})
    }
  }

  /** A member who has signed in, and one whose sign-in link is not used. */
  async #addMembers(): Promise<void> {
    await useLink(this.#service, await invite(this.#service, 'jonas@agency.example', 'admin'))
    await invite(this.#service, 'farah@agency.example', 'viewer')
  }

  /** A checked domain, templates, transports and a DMARC report, and the last uses of the keys. Returns the id of a template. */
  async #setUpMore(): Promise<string> {
    const service = this.#service
    await this.#post(`/domains/${this.#domainId}/verify`, {})
    await this.#publishRecords()
    await receiveReport(service, 'agency.example')
    const { id } = await this.#post<{ id: string }>('/templates', {
      name: 'order-shipped',
      subject: 'Your order {{ number }} is on its way',
      html: orderTemplate,
      variables: {
        name: { type: 'string', default: 'Ann' },
        number: { type: 'number', default: 41_233 },
        gift: { type: 'boolean', default: false },
      },
    })
    await this.#post(`/templates/${id}/publish`, {})
    await this.#post('/templates', {
      name: 'welcome',
      subject: 'Welcome to {{ shop }}',
      html: welcomeTemplate,
      variables: { shop: { type: 'string' } },
    })
    for (const [name, connections] of [
      ['old-provider', 20],
      ['second-relay', 5],
    ] as const)
      await this.#post('/transports', { name, host: `smtp.${name}.example`, username: 'agency', password: 'only for tests', connections })
    // For mail that this week does not send.
    const shared = { domain: 'news.agency.example' }
    await this.#post('/transports/old-provider/share', { percent: 70, ...shared })
    await this.#post('/transports/second-relay/share', { percent: 20, ...shared })
    await service.saveUses()
    return id
  }

  /** Routes, a reply that passes the checks, and a forged automatic message that is forwarded. Returns the id of the reply. */
  async #receive(): Promise<string> {
    const service = this.#service
    for (const route of [
      { address: 'help@agency.example' },
      { address: 'orders+*@agency.example', forwardTo: 'shop-floor@webmail.example' },
      { address: 'jobs@agency.example', enabled: false },
    ])
      await this.#post('/routes', route)
    await using client = await greetedClient(service.ports.smtp)
    const receive = (from: string, to: string, octets: readonly string[]) =>
      vi.waitFor(async () => expect(await sendIncoming(client, { from, to: [to], octets: octets.join('\r\n') })).toMatch(/^250/), 10_000)
    await receive('ann@reader.example', 'help@agency.example', [
      'From: Ann Reader <ann@reader.example>',
      'To: Agency <help@agency.example>',
      'Subject: Re: Your order 41233 is on its way',
      'Message-ID: <re-41233@reader.example>',
      'Content-Type: text/plain; charset=utf-8',
      '',
      'Hello,',
      '',
      'my order arrived without the blue one. Can you send it?',
      '',
      'Ann',
    ])
    await receive('', 'orders+41234@agency.example', [
      'From: Carla <carla@elsewhere.example>',
      'To: orders+41234@agency.example',
      'Subject: Out of office until Monday',
      'Auto-Submitted: auto-replied',
      'Content-Type: text/html; charset=utf-8',
      '',
      '<p>I am away.</p>',
    ])
    await this.#untilTried()
    const { data } = (await service.call('GET', '/received', { key: service.liveKey })).body
    return (data as { id: string; subject: string }[]).find(({ subject }) => subject.startsWith('Re: '))?.id ?? ''
  }

  async finish(): Promise<RealisticData['ids']> {
    const service = this.#service
    const first = async (query: string, key = service.liveKey) =>
      ((await service.call('GET', `/emails?perPage=1&${query}`, { key })).body.data as { id: string }[])[0]?.id ?? ''
    const email = {
      from: 'Agency <hello@simulator.test>',
      html: '<h1>Welcome</h1><p>Confirm your <a href="https://agency.example/confirm">address</a>.</p>',
    }
    for (const to of ['delivered', 'hardfail', 'softfail', 'bounce', 'complaint', 'opened', 'clicked'])
      await this.#post('/emails', { ...email, to: [`${to}@simulator.test`], subject: `Welcome to the agency (${to})` }, service.testKey)
    for (const address of ['legal@rival.example', 'old-list@school.example'])
      await this.#post('/suppressions', { address, reason: 'asked by phone' })
    await this.#untilTried()
    const templateId = await this.#setUpMore()
    const receivedId = await this.#receive()
    await this.#addMembers()
    await service.call('POST', '/emails', {
      key: service.liveKey,
      body: { from: 'nobody@elsewhere.example', to: ['x@y.example'], subject: 'Refused', text: 'x' },
    })
    // Each turn counts a limited number of events.
    for (let turn = 0; turn < 10; turn++) await countOutcomes(service.db, openProviderNames({ relay: undefined, providerRules: undefined }))
    const { data } = (await service.call('GET', '/logs?perPage=1&endpoint=emails.send&status=success', { key: service.liveKey })).body
    return {
      emailId: await first('status=softfail'),
      bouncedId: await first('status=bounced'),
      testId: await first('test=true', service.testKey),
      domainId: this.#domainId,
      webhookId: this.#webhookId,
      requestId: (data as { requestId: string }[])[0]?.requestId ?? '',
      templateId,
      receivedId,
      tenantId: this.#tenants[1]?.id ?? '',
    }
  }
}
