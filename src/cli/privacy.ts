/** Commands for the privacy of a tenant: its own retention of contents and records, hashed addresses, the members who see its contents, and a report of the data that is left. */
import {
  contentAudiences,
  getContentAudience,
  getContentDays,
  getHashDays,
  getRecordDays,
  maxContentDays,
  type PrivacyReport,
  reportPrivacy,
  setContentAudience,
  setContentDays,
  setHashDays,
  setRecordDays,
} from '#privacy'
import { tenantOf } from './command-arguments.ts'
import { type Command, type CommandArguments, jsonOption, printed, text, UsageError } from './command-definition.ts'

const usual = 'default'
const never = 'never'

function daysIn(given: CommandArguments, option: string, other: string, least: number): number | null | undefined {
  const days = text(given, option)
  if (days === undefined) return undefined
  if (days === other) return null
  if (!/^\d{1,4}$/.test(days) || Number(days) > maxContentDays || Number(days) < least)
    throw new UsageError(`--${option} must be ${least} to ${maxContentDays}, or ${other}: ${days}`)
  return Number(days)
}

function wantedIn(given: CommandArguments) {
  const contentDays = daysIn(given, 'content-days', usual, 0)
  const hashDays = daysIn(given, 'hash-addresses-after-days', never, 1)
  const recordDays = daysIn(given, 'record-days', usual, 1)
  const audience = text(given, 'content-visible-to')
  if ([contentDays, hashDays, recordDays, audience].every((one) => one === undefined))
    throw new UsageError('--content-days, --hash-addresses-after-days, --record-days or --content-visible-to is required')
  if (audience !== undefined && !contentAudiences.some((one) => one === audience))
    throw new UsageError(`--content-visible-to must be one of ${contentAudiences.join(', ')}: ${audience}`)
  return { contentDays, hashDays, recordDays, audience }
}

export const privacySet: Command = {
  name: 'privacy set',
  audited: true,
  summary: 'set how long the contents, addresses and records of a tenant are kept, and which members see contents',
  help: `postrider privacy set TENANT [--content-days DAYS|default] [--hash-addresses-after-days DAYS|never]
                            [--record-days DAYS|default] [--content-visible-to everyone|admins|owners] [--json]

--content-days sets the retention of the contents of a tenant's emails, in days; their records stay. 0 deletes a content within a minute after the last
recipient's email is final. The bodies of the tenant's calls in the request log have the same retention; with 0 they are not stored.
POSTRIDER_KEEP_CONTENT_DAYS applies to every tenant, so a longer retention of contents has no effect. Queued emails, and test mail in the
test inbox, keep their content.

--hash-addresses-after-days replaces the recipients of final emails by hashes, that many days after acceptance, and the addresses in attempts,
events, webhook deliveries and the request log too. This cannot be undone. Contents are deleted by then. Suppressions keep their addresses.

--record-days reduces the records of final emails to id, times and status, that many days after acceptance, and deletes attempts, opens, clicks,
events, webhook deliveries, received mail and entries of the request log. This cannot be undone. Contents are deleted by then. Counts and the
pages of lists stay right.

--content-visible-to hides the contents from members of lower roles, in the dashboard. It does not concern API keys.

Example: postrider privacy set tq3v6k2m --content-days 0`,
  options: {
    'content-days': { type: 'string' },
    'hash-addresses-after-days': { type: 'string' },
    'record-days': { type: 'string' },
    'content-visible-to': { type: 'string' },
    ...jsonOption,
  },
  positionals: ['TENANT'],
  values: { 'content-visible-to': contentAudiences },
  async run(given, deps) {
    const wanted = wantedIn(given)
    await deps.withInstallation(async (installation) => {
      const { id } = await tenantOf(installation, given.positionals[0])
      const found = await installation.db.transaction(async (tx) => {
        const nowMs = installation.clock.nowMs()
        if (wanted.contentDays !== undefined) await setContentDays(tx, id, wanted.contentDays, nowMs)
        if (wanted.hashDays !== undefined) await setHashDays(tx, id, wanted.hashDays, nowMs)
        if (wanted.recordDays !== undefined) await setRecordDays(tx, id, wanted.recordDays, nowMs)
        if (wanted.audience !== undefined) await setContentAudience(tx, id, wanted.audience, nowMs)
        return {
          contentDays: await getContentDays(tx, id),
          hashAddressesAfterDays: await getHashDays(tx, id),
          recordDays: await getRecordDays(tx, id),
          contentVisibleTo: await getContentAudience(tx, id),
        }
      })
      const { contentDays, hashAddressesAfterDays: hashDays, recordDays, contentVisibleTo } = found
      const keptFor = (days: number | null) => (days === null ? 'as the installation keeps them' : `for ${days} days`)
      const hashed = hashDays === null ? 'never hashed' : `hashed after ${hashDays} days`
      const contents = `contents of tenant ${id} are kept ${keptFor(contentDays)}, and visible to ${contentVisibleTo}`
      const line = `${contents}; addresses are ${hashed}; records are kept ${keptFor(recordDays)}`
      printed(given, deps, { tenantId: id, ...found }, line)
    })
  },
}

const line = (name: string, { rows, oldest }: PrivacyReport['attempts'], more = '') =>
  `${name}: ${rows}${oldest === null ? '' : `, since ${oldest.toISOString()}`}${more}`

export const privacyReport: Command = {
  name: 'privacy report',
  summary: "count the data that is left of a tenant's emails",
  help: `postrider privacy report TENANT [--json]

Counts the contents, emails and attempts of a tenant in the database, with the time of the oldest, the contents that queued emails or
the test inbox still need. It also counts the emails whose record is not reduced, the calls in the request log, those whose bodies are left, events, opens and clicks, webhook deliveries
and received messages, and the rows with addresses that are not hashed. It reads the tables themselves, which takes minutes for millions of emails.

Example: postrider privacy report tq3v6k2m --json`,
  options: { ...jsonOption },
  positionals: ['TENANT'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const { id } = await tenantOf(installation, given.positionals[0])
      const { keepContentDays } = installation.config
      const report = await reportPrivacy(installation.db, id, { nowMs: installation.clock.nowMs(), keepContentDays })
      const { contents, emails, attempts, requestBodies, contentDays, addresses, ...more } = report
      const lines = [
        `retention of contents: ${contentDays} days`,
        line('contents', contents, `; ${contents.ofQueuedEmails} of queued emails, ${contents.ofTestMail} of test mail`),
        line('emails', emails, `; ${emails.erased} without an address`),
        line('attempts', attempts),
        `retention of records: ${more.recordDays === null ? 'as the installation' : `${more.recordDays} days`}`,
        line('emails whose record is not reduced', more.records, `; ${more.records.notFinal} not final`),
        line('calls in the request log', more.requests),
        line('calls in the request log for no single tenant', more.requests.ofNoTenant),
        line('bodies in the request log', requestBodies),
        line('bodies in the request log of calls for no single tenant', requestBodies.ofNoTenant),
        line('events', more.events),
        line('opens and clicks', more.opensAndClicks),
        line('webhook deliveries', more.webhookDeliveries),
        line('received messages', more.receivedMessages),
        `hashing of addresses: ${more.hashAddressesAfterDays === null ? never : `after ${more.hashAddressesAfterDays} days`}`,
        line('recipients that are not hashed', addresses.emails, `; ${addresses.emails.hashed} are`),
        line('attempts with addresses', addresses.attempts),
        line('events with addresses', addresses.events),
        line('opens and clicks with addresses', addresses.opensAndClicks),
        line('webhook deliveries with addresses', addresses.webhookDeliveries),
        line('calls with addresses in path or error', addresses.requests),
        line('the same of calls for no single tenant', addresses.requests.ofNoTenant),
      ]
      printed(given, deps, { ...report }, lines.join('\n'))
    }),
}
