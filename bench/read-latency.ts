/**
 * Read performance: lists, filters, usage and exports with a million emails of a thousand tenants, compared with ten thousand emails.
 * Inserts directly into the database, which takes minutes in place of hours; the counts equal those of the roll-up.
 */
import { emailIdPrefix, silentLog } from '#base'
import { embeddedUrlIfRunning, ensurePartitions, openDb, sql } from '#db'
import { emailTables } from '#emails'
import { type ServiceProcess, startServiceProcess } from '../test/support/spawned-service.ts'
import { addTenants, countEmails } from './million-emails.ts'

const few = 10_000
const many = 1_000_000
const tenants = 1000
const days = 30
const dayMs = 86_400_000
const batch = 10_000
const requestsEach = 200

const addEmails = sql`
  insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, tag, message_id, test, status, accepted_at)
  select tenant_id, id, id, 'person' || nth % 50000 || '@example.com', 'shop@example.net', 'Shop <shop@example.net>',
         'Your order ' || nth, case when nth % 3 = 0 then 'order' else 'tag' || nth % 1000 end, '<' || id || '@example.net>', false,
         case when nth % 100 = 0 then 'hardfail' else 'sent' end, at
  from unnest($1::text[], $2::text[], $3::integer[], $4::timestamptz[]) as given (tenant_id, id, nth, at)`
const forget = sql`
  truncate email_counts`

export interface Reading {
  name: string
  /** Milliseconds, p99. */
  ours: number
  against: number
  ratio: number
  spread: null
}

async function fill(service: ServiceProcess, from: number, to: number, note: (text: string) => void): Promise<void> {
  const url = (await embeddedUrlIfRunning(service.folder)) as string
  const db = await openDb({ url, poolSize: 1, applicationName: 'bench', log: silentLog })
  const firstMs = Date.now() - days * dayMs
  if (from === 0) {
    await ensurePartitions(db, emailTables, firstMs, days)
    await db.run(addTenants, [new Date(firstMs), tenants])
  }
  for (let done = from; done < to; done += batch) {
    const size = Math.min(batch, to - done)
    const nths = Array.from({ length: size }, (_, n) => done + n)
    // Spread over the days in no order, as if sent continuously.
    const times = nths.map((nth) => firstMs + ((nth * 7_919_777) % (days * dayMs)))
    const ids = nths.map((nth, n) => `${emailIdPrefix(times[n] as number)}${String(nth).padStart(14, '0')}`)
    const owners = nths.map((nth) => `t${String((nth % tenants) + 1).padStart(23, '0')}`)
    await db.run(addEmails, [owners, ids, nths, times.map((ms) => new Date(ms))])
    if (done % 200_000 === 0) note(`  ${done + size} emails`)
  }
  await db.run(forget)
  await db.run(countEmails)
  await db.script('analyze emails; analyze email_counts')
  await db.close()
}

const tenant = `t${'7'.padStart(23, '0')}`
const before = new Date(Date.now() - 10 * dayMs).toISOString()
const questions: Record<string, (round: number, emails: number) => string> = {
  'read/first-page': () => '/emails',
  'read/page-of-a-tenant': () => `/emails?tenantId=${tenant}`,
  'read/deep-page': (round, emails) => `/emails?perPage=100&page=${Math.max(1, Math.floor(emails / 100) - (round % 50))}`,
  'read/by-status': () => '/emails?status=hardfail',
  'read/by-recipient': (round) => `/emails?to=person${round * 37}@example.com`,
  'read/by-sender-of-a-tenant': () => `/emails?tenantId=${tenant}&from=shop@example.net`,
  'read/by-tag-of-a-tenant': () => `/emails?tenantId=${tenant}&tag=order`,
  'read/by-tag': (round) => `/emails?tag=tag${1 + round * 3}`,
  'read/before': () => `/emails?before=${before}`,
  'read/usage': () => '/usage?period=last_30_days',
  'read/usage-of-a-tenant': () => `/tenants/${tenant}/usage?period=last_30_days&timezone=Asia/Kathmandu`,
  'read/usage-tenants': () => '/usage/tenants?period=last_30_days',
  'read/export': () => '/usage/export?period=last_30_days&format=csv',
}

/** The p99 of each query, in ms. */
async function ask(service: ServiceProcess, emails: number): Promise<Record<string, number>> {
  const took: Record<string, number> = {}
  for (const [name, path] of Object.entries(questions)) {
    const times: number[] = []
    for (let round = 0; round < requestsEach; round++) {
      const beganMs = performance.now()
      const answer = await fetch(`${service.url}/v1${path(round, emails)}`, { headers: { authorization: `Bearer ${service.liveKey}` } })
      await answer.arrayBuffer()
      if (answer.status !== 200) throw new Error(`${path(round, emails)} was answered ${answer.status}`)
      times.push(performance.now() - beganMs)
    }
    took[name] = times.sort((a, b) => a - b)[Math.floor(requestsEach * 0.99) - 1] as number
  }
  return took
}

export async function read(note: (text: string) => void): Promise<Reading[]> {
  await using service = await startServiceProcess({
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_LOG_LEVEL: 'error',
    POSTRIDER_ROLES: 'api',
    POSTRIDER_KEEP_EMAIL_DAYS: '90',
  })
  await fill(service, 0, few, note)
  await ask(service, few)
  const small = await ask(service, few)
  await fill(service, few, many, note)
  await ask(service, many)
  const large = await ask(service, many)
  return Object.keys(questions).map((name) => {
    const [ours, against] = [large[name] ?? 0, small[name] ?? 0]
    return {
      name,
      ours: Number(ours.toFixed(1)),
      against: Number(against.toFixed(1)),
      ratio: Number((ours / against).toFixed(2)),
      spread: null,
    }
  })
}
