/** DMARC reports in the dialects of twelve reporters, counted by Postrider and by Python's parser. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { sql } from '#db'
import { openDomainReports, openReportAddresses, openReportMailReader } from '#domain-reports'
import { dialects, generateReport, mailOf, seededDraw } from '../support/dmarc-dialects.ts'
import { startService } from '../support/in-process-service.ts'

const count = 500
const atOnce = 20
const domain = 'reported.test'

const uuidOf = sql<{ uuid: string }>`
  select uuid
  from domains
  where name = $1`

const figures = sql<{ key: string; counts: number[] }>`
  select concat_ws(' ', day, source, header_from) as key,
    array[messages, aligned, dkim_aligned, spf_aligned, quarantined, rejected] as counts
  from dmarc_days`

test('five hundred reports in twelve dialects have the figures that an independent parser finds', async () => {
  await using service = await startService({ settings: {} })
  await service.addDomain(service.tenantId, domain)
  const { uuid } = (await service.db.first(uuidOf, [domain])) as { uuid: string }
  const { db, secrets } = service
  const reader = openReportMailReader({ clock: systemClock, log: silentLog })
  const resolver = { txt: async () => ({ kind: 'nxdomain' as const }) }
  const read = reader.read
  const reports = openDomainReports({ db, clock: systemClock, log: silentLog, secrets, resolver, hostname: 'house.test', read })
  const address = openReportAddresses(secrets, 'rp.house.test').make(uuid)
  const folder = await mkdtemp(join(tmpdir(), 'postrider-dmarc-'))
  const draw = seededDraw(2026)
  const files: string[] = []
  const envelope = { recipients: [address], address: '192.0.2.1' }
  const receive = async (mail: Buffer, number: number) => {
    await writeFile(files[number] as string, mail)
    expect(await reports.take(envelope, mail), `report ${number}`).toBeUndefined()
    // The same report again, as after a lost reply.
    if (number % 50 === 0) await reports.take(envelope, mail)
  }
  for (let number = 0; number < count; ) {
    const together: Promise<void>[] = []
    for (const end = number + atOnce; number < end; number++) {
      files.push(join(folder, `${number}.eml`))
      together.push(receive(mailOf(generateReport(number, domain, Date.now(), draw), address), number))
    }
    await Promise.all(together)
  }
  const told = JSON.parse(
    execFileSync('python3', [new URL('./read-dmarc.py', import.meta.url).pathname], {
      input: files.join('\n'),
      maxBuffer: 2 ** 26,
    }).toString(),
  ) as Record<string, number[]>
  const counted = Object.fromEntries((await db.rows(figures)).map(({ key, counts }) => [key, counts]))
  expect(Object.keys(dialects)).toHaveLength(12)
  expect(Object.keys(told).length).toBeGreaterThan(1000)
  expect(counted).toEqual(told)
  reader.stop()
  await rm(folder, { recursive: true })
}, 120_000)
