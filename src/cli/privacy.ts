/** Commands for the privacy of a tenant: its own retention, the members who see its contents, and a report of the data that is left. */
import {
  contentAudiences,
  getContentAudience,
  getContentDays,
  maxContentDays,
  type PrivacyReport,
  reportPrivacy,
  setContentAudience,
  setContentDays,
} from '#privacy'
import { type Command, type CommandArguments, jsonOption, printed, tenantOf, text, UsageError } from './command-definition.ts'

const usual = 'default'

function daysIn(text: string): number | null {
  if (text === usual) return null
  if (!/^\d{1,4}$/.test(text) || Number(text) > maxContentDays)
    throw new UsageError(`--content-days must be 0 to ${maxContentDays}, or ${usual}: ${text}`)
  return Number(text)
}

function wantedIn(given: CommandArguments) {
  const days = text(given, 'content-days')
  const audience = text(given, 'content-visible-to')
  if (days === undefined && audience === undefined) throw new UsageError('--content-days or --content-visible-to is required')
  if (audience !== undefined && !contentAudiences.some((one) => one === audience))
    throw new UsageError(`--content-visible-to must be one of ${contentAudiences.join(', ')}: ${audience}`)
  return { days: days === undefined ? undefined : daysIn(days), audience }
}

export const privacySet: Command = {
  name: 'privacy set',
  audited: true,
  summary: 'set how long the contents of a tenant are kept, and which members see them',
  help: `postrider privacy set TENANT [--content-days DAYS|default] [--content-visible-to everyone|admins|owners] [--json]

Sets the retention of the contents of a tenant's emails, in days; their records stay. 0 deletes a content within a minute after the last
recipient's email is final. The bodies of the tenant's calls in the request log have the same retention; with 0 they are not stored.
POSTRIDER_KEEP_CONTENT_DAYS applies to every tenant, so a longer retention of contents has no effect. Queued emails, and test mail in the
test inbox, keep their content.

--content-visible-to hides the contents from members of lower roles, in the dashboard. It does not concern API keys.

Example: postrider privacy set tq3v6k2m --content-days 0`,
  options: { 'content-days': { type: 'string' }, 'content-visible-to': { type: 'string' }, ...jsonOption },
  positionals: ['TENANT'],
  values: { 'content-visible-to': contentAudiences },
  async run(given, deps) {
    const wanted = wantedIn(given)
    await deps.withInstallation(async (installation) => {
      const { id } = await tenantOf(installation, given.positionals[0])
      const { days, audience } = await installation.db.transaction(async (tx) => {
        const nowMs = installation.clock.nowMs()
        if (wanted.days !== undefined) await setContentDays(tx, id, wanted.days, nowMs)
        if (wanted.audience !== undefined) await setContentAudience(tx, id, wanted.audience, nowMs)
        return { days: await getContentDays(tx, id), audience: await getContentAudience(tx, id) }
      })
      const shown = days === null ? 'as the installation keeps them' : `for ${days} days`
      const line = `contents of tenant ${id} are kept ${shown}, and visible to ${audience}`
      printed(given, deps, { tenantId: id, contentDays: days, contentVisibleTo: audience }, line)
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
the test inbox still need. It also counts the calls in the request log whose bodies are left, events, opens and clicks, webhook deliveries
and received messages. It reads the tables themselves, which takes minutes for millions of emails.

Example: postrider privacy report tq3v6k2m --json`,
  options: { ...jsonOption },
  positionals: ['TENANT'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const { id } = await tenantOf(installation, given.positionals[0])
      const { keepContentDays } = installation.config
      const report = await reportPrivacy(installation.db, id, { nowMs: installation.clock.nowMs(), keepContentDays })
      const { contents, emails, attempts, requestBodies, contentDays, ...more } = report
      const lines = [
        `retention of contents: ${contentDays} days`,
        line('contents', contents, `; ${contents.ofQueuedEmails} of queued emails, ${contents.ofTestMail} of test mail`),
        line('emails', emails, `; ${emails.erased} without an address`),
        line('attempts', attempts),
        line('bodies in the request log', requestBodies),
        line('bodies in the request log of calls for no single tenant', requestBodies.ofNoTenant),
        line('events', more.events),
        line('opens and clicks', more.opensAndClicks),
        line('webhook deliveries', more.webhookDeliveries),
        line('received messages', more.receivedMessages),
      ]
      printed(given, deps, { ...report }, lines.join('\n'))
    }),
}
