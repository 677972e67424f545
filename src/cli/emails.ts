/** Commands for emails: list, show, retry, cancel, reschedule, and `explain` for an email's state. */
import type { Email, ListedEmail, ScheduledEmail } from '#client'
import { emailStatuses } from '#emails'
import { apiHelp, apiUsage, limitOf, maxListed, perRequest, plain, tenantApiOptions, usuallyListed, withApi } from './api.ts'
import { type Command, type CommandArguments, needed, printed, text, UsageError } from './command-definition.ts'
import { shade } from './styles.ts'

const line = ({ id, timestampIso, status, to, subject, test }: ListedEmail) =>
  `${id}  ${timestampIso.slice(0, 19)}Z  ${shade(status, 8)}  ${plain(to).padEnd(32)}  ${plain(subject)}${test ? '  (test)' : ''}`

/** undefined: mail of both kinds. */
function kindOf({ options }: CommandArguments): boolean | undefined {
  if (options.test === true && options.live === true) throw new UsageError('give --test or --live, not both')
  return options.test === true ? true : options.live === true ? false : undefined
}

function statusOf(given: CommandArguments) {
  const wanted = text(given, 'status')
  const status = emailStatuses.find((one) => one === wanted)
  if (wanted !== undefined && status === undefined) throw new UsageError(`--status must be one of ${emailStatuses.join(', ')}`)
  return status
}

export const emailList: Command = {
  name: 'email list',
  summary: 'list emails, newest first',
  help: `postrider email list [--status S] [--to A] [--from A] [--tag T] [--subject WORDS] [--after T] [--before T] [--test|--live]
                     [--limit N] [--tenant ID] ${apiUsage}

Lists emails with id, time, status, recipient and subject.
--status         ${emailStatuses.join(', ')}
--subject        words of the subject, or their beginnings
--after, --before  time of acceptance: unix seconds or ISO 8601
--test, --live   only mail sent with test keys, or only live mail
--limit          number of emails (default: ${usuallyListed}; at most ${maxListed})
${apiHelp}

Example: postrider email list --status hardfail --after 2026-03-01 --limit 100`,
  options: {
    ...Object.fromEntries(
      ['status', 'to', 'from', 'tag', 'subject', 'after', 'before', 'limit'].map((name) => [name, { type: 'string' as const }]),
    ),
    test: { type: 'boolean' },
    live: { type: 'boolean' },
    ...tenantApiOptions,
  },
  values: { status: emailStatuses },
  run(given, deps) {
    const limit = limitOf(given)
    const [to, from, tag, subject, after, before] = ['to', 'from', 'tag', 'subject', 'after', 'before'].map((name) => text(given, name))
    const query = { status: statusOf(given), test: kindOf(given), to, from, tag, subject, after, before, tenantId: text(given, 'tenant') }
    return withApi(given, deps, async ({ api }) => {
      const emails = await api.emails.list({ ...query, perPage: Math.min(limit, perRequest) }).take(limit)
      printed(given, deps, { emails }, emails.map(line).join('\n') || 'no emails')
    })
  },
}

type Attempt = NonNullable<Email['deliveries']>[number]

const attemptLine = ({ timestampIso, status, details, output }: Attempt) =>
  `  ${timestampIso} ${shade(status)}: ${plain(details)}${output === '' ? '' : `\n    ${plain(output)}`}`

function shownEmail(email: Email): string {
  const { id, from, to, subject, status, test, tenantId, timestampIso, tag, messageId, explanation, deliveries = [] } = email
  const { scheduledAt } = email
  const { now, next } = explanation
  return [
    `${id} ${shade(status)}${test ? ' (test)' : ''}`,
    `  from     ${plain(from)}`,
    `  to       ${plain(to)}`,
    `  subject  ${plain(subject)}`,
    ...(tag === undefined ? [] : [`  tag      ${plain(tag)}`]),
    `  accepted ${timestampIso}, tenant ${tenantId}, Message-ID ${plain(messageId)}`,
    ...(scheduledAt === undefined ? [] : [`  scheduled ${scheduledAt}`]),
    '',
    plain(now),
    plain(next),
    ...(deliveries.length === 0 ? [] : ['', 'Attempts:', ...deliveries.map(attemptLine)]),
  ].join('\n')
}

export const emailShow: Command = {
  name: 'email show',
  summary: 'show an email, its state and its attempts',
  help: `postrider email show ID [--tenant ID] ${apiUsage}

Prints an email with its state, the reason, the next step and every attempt; with --json also its headers, content and opens and clicks.
${apiHelp}

Example: postrider email show 0Wq7T4vZk2qXw9LbN1cYdE --json`,
  options: tenantApiOptions,
  positionals: ['ID'],
  run: (given, deps) =>
    withApi(given, deps, async ({ api }) => {
      const expand = given.options.json === true ? 'content,headers,deliveries,activity' : 'deliveries'
      const email = await api.emails.retrieve(given.positionals[0] as string, { expand, tenantId: text(given, 'tenant') })
      printed(given, deps, { ...email }, shownEmail(email))
    }),
}

export const emailRetry: Command = {
  name: 'email retry',
  summary: 'retry an email that failed, bounced or is held',
  help: `postrider email retry ID [--tenant ID] ${apiUsage}

Queues an email again, to be sent at once. Its status must be softfail, hardfail, bounced or held, and its content must still be stored.
A retry also sends to a suppressed recipient.
${apiHelp}

Example: postrider email retry 0Wq7T4vZk2qXw9LbN1cYdE`,
  options: tenantApiOptions,
  positionals: ['ID'],
  run: (given, deps) =>
    withApi(given, deps, async ({ api }) => {
      const retried = await api.emails.retry(given.positionals[0] as string, { tenantId: text(given, 'tenant') })
      printed(given, deps, { ...retried }, `${retried.id}: ${plain(retried.message)}`)
    }),
}

function shownChange({ id, status, messages, scheduledAt, cancelledAt }: ScheduledEmail): string {
  const what = cancelledAt === undefined ? `leaves at ${scheduledAt}` : `cancelled at ${cancelledAt}`
  return [`${id} ${shade(status)}: ${what}`, ...Object.keys(messages).map((recipient) => `  ${plain(recipient)}`)].join('\n')
}

export const emailCancel: Command = {
  name: 'email cancel',
  summary: 'cancel a scheduled email before it leaves',
  help: `postrider email cancel ID [--tenant ID] ${apiUsage}

Cancels a scheduled email for all recipients of its message. Fails once the message has left for one of them. Can be repeated.
${apiHelp}

Example: postrider email cancel 0Wq7T4vZk2qXw9LbN1cYdE`,
  options: tenantApiOptions,
  positionals: ['ID'],
  run: (given, deps) =>
    withApi(given, deps, async ({ api }) => {
      const changed = await api.emails.cancel(given.positionals[0] as string, { tenantId: text(given, 'tenant') })
      printed(given, deps, { ...changed }, shownChange(changed))
    }),
}

export const emailReschedule: Command = {
  name: 'email reschedule',
  summary: 'give a scheduled email another time',
  help: `postrider email reschedule ID --at TIME [--tenant ID] ${apiUsage}

Reschedules a scheduled email for all recipients of its message. Fails once the message has left for one of them.
--at  ISO 8601 with a zone, or Unix seconds; at most 30 days ahead, and at most 60 days after the email was accepted
${apiHelp}

Example: postrider email reschedule 0Wq7T4vZk2qXw9LbN1cYdE --at 2030-01-31T09:30:00+01:00`,
  options: { at: { type: 'string' }, ...tenantApiOptions },
  positionals: ['ID'],
  run: (given, deps) =>
    withApi(given, deps, async ({ api }) => {
      const wanted = { scheduledAt: needed(given, 'at'), tenantId: text(given, 'tenant') }
      const changed = await api.emails.reschedule(given.positionals[0] as string, wanted)
      printed(given, deps, { ...changed }, shownChange(changed))
    }),
}

export const explainCommand: Command = {
  name: 'explain',
  summary: 'explain the current state of an email and the next step',
  help: `postrider explain EMAIL_ID [--tenant ID] ${apiUsage}

Prints the status of the email, its current state and the next step. The API returns the last two as \`explanation\` of an email.
${apiHelp}

Example: postrider explain 0Wq7T4vZk2qXw9LbN1cYdE`,
  options: tenantApiOptions,
  positionals: ['EMAIL_ID'],
  run: (given, deps) =>
    withApi(given, deps, async ({ api }) => {
      const { id, status, explanation } = await api.emails.retrieve(given.positionals[0] as string, { tenantId: text(given, 'tenant') })
      const lines = [`status: ${shade(status)}`, `now:    ${plain(explanation.now)}`, `next:   ${plain(explanation.next)}`]
      printed(given, deps, { id, status, ...explanation }, lines.join('\n'))
    }),
}
