/**
 * Tracking links: opens and clicks of a thousand emails on one API process, which records all of them, compared with its constant response.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openIds, openSecrets, silentLog, systemRandom } from '#base'
import { type Db, embeddedUrlIfRunning, openDb, sql } from '#db'
import { openTokens } from '#tracking'
import { type ServiceProcess, startServiceProcess } from '../test/support/spawned-service.ts'
import type { BenchRequest } from './client.ts'
import { askInLoop, paced } from './helpers.ts'

const emails = 1000
const domain = 'tracking.bench.test'
const recordedWithinMs = 30_000
const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'

const defaultTenant = sql<{ id: string }>`
  select id
  from tenants
  where is_default`
const addEmails = sql`
  insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, message_id, test, status, accepted_at)
  select $1, id, id, 'person@example.com', 'shop@example.net', 'shop@example.net', 'Your order', id, false, 'sent', $3
  from unnest($2::text[]) as given (id)`
const addAttempts = sql`
  insert into attempts (tenant_id, email_id, number, status, at, duration_ms, details, output, secure, outcome_unknown)
  select $1, id, 1, 'sent', $3, 100, '', '', true, false
  from unnest($2::text[]) as given (id)`
const recorded = sql<{ hits: number; events: number }>`
  select (select count(*) from tracking_events) as hits, (select count(*) from events where kind in ('MessageLoaded', 'MessageLinkClicked')) as events`

type Ask = (connections: number, enough: (sent: number) => boolean) => Promise<number>

interface Links extends AsyncDisposable {
  service: ServiceProcess
  /** A sending domain of the service. */
  domain: string
  /** Follows links; returns their number. */
  follow: Ask
  /** Follows links at this rate, or as fast as possible, until `work` is done; returns their number. */
  followWhile<Result>(perSecond: number, connections: number, work: () => Promise<Result>): Promise<{ result: Result; perSecond: number }>
  /** Requests the constant liveness response. */
  ping: Ask
  /** Throws unless every followed link is recorded, with its event. */
  expectRecorded(): Promise<void>
}

/** Adds the domain and emails; returns the request of each open and click. */
async function addLinks(service: ServiceProcess, db: Db): Promise<BenchRequest[]> {
  await service.command('domain', 'add', domain, '--trust')
  const { domains } = (await service.call('GET', '/domains')).body.data as { domains: { id: string; name: string }[] }
  const domainId = domains.find((one) => one.name === domain)?.id
  const made = await service.call('POST', '/tracking', { domainId, name: 'click' })
  if (made.status !== 201) throw new Error(`the track domain was not made: ${JSON.stringify(made.body)}`)

  const ids = openIds(systemRandom)
  const acceptedMs = Date.now() - 60_000
  const emailIds = Array.from({ length: emails }, () => ids.emailId(acceptedMs))
  const tenantId = (await db.first(defaultTenant))?.id as string
  await db.run(addEmails, [tenantId, emailIds, new Date(acceptedMs)])
  await db.run(addAttempts, [tenantId, emailIds, new Date(acceptedMs)])
  const tokens = openTokens(openSecrets(readFileSync(join(service.folder, 'secret'), 'utf8').trim(), systemRandom))
  const headers = { host: `click.${domain}`, 'user-agent': userAgent }
  return emailIds.flatMap((emailId, n): BenchRequest[] => {
    const path = (kind: 'open' | 'click', url: string) => `/${kind[0]}/${tokens.make({ kind, tenantId, emailId, url })}`
    return [
      { method: 'GET', path: path('open', ''), headers, status: 200 },
      { method: 'GET', path: path('click', `https://shop.example.com/orders/${n}?id=${n}`), headers, status: 302 },
    ]
  })
}

export async function startTracking(environment: Record<string, string>): Promise<Links> {
  const service = await startServiceProcess(environment)
  const db = await openDb({
    url: (await embeddedUrlIfRunning(service.folder)) as string,
    poolSize: 1,
    applicationName: 'bench',
    log: silentLog,
  })
  const links = await addLinks(service, db)
  const port = Number(new URL(service.url).port)
  const ping: BenchRequest = { method: 'GET', path: '/healthz', headers: { host: 'localhost', 'user-agent': userAgent }, status: 200 }
  let followed = 0
  return {
    service,
    domain,
    async follow(connections, enough) {
      const answered = await askInLoop({ port, connections }, (nth) => links[nth % links.length] as BenchRequest, enough)
      followed += answered
      return answered
    },
    async followWhile(perSecond, connections, work) {
      const beganMs = performance.now()
      let isDone = false
      const following = askInLoop(
        { port, connections },
        (nth) => links[nth % links.length] as BenchRequest,
        () => isDone,
        paced(perSecond),
      )
      const result = await work().finally(() => (isDone = true))
      const tookMs = performance.now() - beganMs
      const answered = await following
      followed += answered
      return { result, perSecond: answered / (tookMs / 1000) }
    },
    ping: (connections, enough) => askInLoop({ port, connections }, () => ping, enough),
    async expectRecorded() {
      const untilMs = performance.now() + recordedWithinMs
      for (;;) {
        const found = await db.first(recorded)
        if (found?.hits === followed && found.events === followed) return
        if (performance.now() > untilMs) throw new Error(`of ${followed} links followed, recorded are ${JSON.stringify(found)}`)
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
    },
    async [Symbol.asyncDispose]() {
      await db.close()
      await service[Symbol.asyncDispose]()
    },
  }
}
