/**
 * The dashboard's Emails page with a million emails: milliseconds of its requests with each filter (median and p95). Alternates with
 * reading one tenant's page by primary key, for comparison.
 */
import { silentLog } from '#base'
import { embeddedUrlIfRunning, openDb } from '#db'
import { indexEndedDays } from '#emails'
import { type ServiceProcess, startServiceProcess } from '../test/support/spawned-service.ts'
import { fillMillion, largeTenant } from './million-emails.ts'

const emails = 1_000_000
const rounds = 40
const perPage = 30
/** The limit required by the issue. */
const maxMs = 1000

const byPrimaryKey = `tenantId=${largeTenant}`
const filters: Record<string, (round: number) => string> = {
  'no filter': () => '',
  'a deep page': (round) => `page=${20_000 + round}`,
  recipient: (round) => `to=person${round * 37}@example${(round * 37 * 7) % 50}.com`,
  sender: (round) => `from=shop@mail${round % 20}.example.net`,
  tag: (round) => `tag=tag${1 + round * 3}`,
  status: () => 'status=bounced',
  'status, live mail': () => 'status=bounced&test=false',
  'status of none, live mail': () => 'status=held&test=false',
  time: (round) => `before=${new Date(Date.now() - (5 + (round % 20)) * 86_400_000).toISOString()}`,
  'subject, one word of few emails': (round) => `subject=word${2100 + round}`,
  'subject, a word of nearly all': () => 'subject=order',
  'subject, a word of none': (round) => `subject=nothing${round}`,
  'subject, three words': (round) => `subject=your+word${round}+way`,
  domain: (round) => `domain=mail${round % 20}.example.net`,
  key: (round) => `credentialId=${1 + (round % 6)}`,
  'a key of none': () => 'credentialId=999',
  'metadata, of one email': (round) => `metadata=order_id:${round * 7919}`,
  'metadata, of many': (round) => `metadata=shop:shop${round % 40}`,
  'a tenant and a word': (round) => `tenantId=${largeTenant}&subject=word${round * 2}`,
  'a small tenant and a word': (round) => `tenantId=t${String(2 + round * 2).padStart(23, '0')}&subject=word${round}`,
  'a word in a week': (round) => `subject=word${round}&after=${new Date(Date.now() - 7 * 86_400_000).toISOString()}`,
}

const percentile = (times: number[], share: number) => times.sort((a, b) => a - b)[Math.ceil(times.length * share) - 1] as number

async function ask(service: ServiceProcess, query: string): Promise<number> {
  const beganMs = performance.now()
  const answer = await fetch(`${service.url}/v1/emails?perPage=${perPage}&${query}`, {
    headers: { authorization: `Bearer ${service.liveKey}` },
  })
  await answer.arrayBuffer()
  if (answer.status !== 200) throw new Error(`${query} was answered ${answer.status}`)
  return performance.now() - beganMs
}

/** `ours` and `against` in ms at p95; `spread`: median and p95 of Postrider. */
export async function emailsPage(note: (text: string) => void) {
  await using service = await startServiceProcess({
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_LOG_LEVEL: 'error',
    POSTRIDER_ROLES: 'api',
    POSTRIDER_KEEP_EMAIL_DAYS: '90',
  })
  const url = (await embeddedUrlIfRunning(service.folder)) as string
  const db = await openDb({ url, poolSize: 1, applicationName: 'bench', log: silentLog })
  await fillMillion(db, emails, note)
  note('  the search index of ended days')
  await indexEndedDays(db, Date.now())
  await db.close()
  const results = []
  for (const [name, queryOf] of Object.entries(filters)) {
    const [ours, against]: [number[], number[]] = [[], []]
    for (let round = 0; round < rounds; round++) {
      ours.push(await ask(service, queryOf(round)))
      against.push(await ask(service, byPrimaryKey))
    }
    const [p50, p95, other] = [percentile(ours, 0.5), percentile(ours, 0.95), percentile(against, 0.95)]
    note(
      `  ${name}: p50 ${Math.round(p50)} ms, p95 ${Math.round(p95)} ms${p95 < maxMs ? '' : ' (too slow)'}; by primary key p95 ${Math.round(other)} ms`,
    )
    results.push({
      name: `emails-page/${name}`,
      ours: Math.round(p95),
      against: Math.round(other),
      ratio: Number((p95 / other).toFixed(1)),
      spread: [Math.round(p50), Math.round(p95)] as [number, number],
    })
  }
  return results
}
