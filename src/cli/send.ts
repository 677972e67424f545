/** `postrider send`: sends one email through the running service's API and follows it until it is final. */
import { pause } from '#base'
import { plain, withRemote } from './api.ts'
import { type Command, type CommandArguments, jsonOption, needed, text, UsageError } from './command-definition.ts'
import { objectOf } from './json-option.ts'
import { shade } from './styles.ts'

const finalStates = ['sent', 'hardfail', 'bounced', 'held']
const failedStates = ['hardfail', 'bounced', 'held']
const askEveryMs = 200
const followForMs = 60_000
/** Another program may use up the rate limit of the key at the same time. */
const maxRetries = 10

export const sendCommand: Command = {
  name: 'send',
  summary: 'send one email and print its attempts',
  help: `postrider send --from A --to B [--subject S] [--text T] [--html H] [--at TIME]
               [--template NAME [--variables JSON]]
               [--key K] [--url URL] [--json]

Sends one email through the running service and prints each attempt until the final status, for up to one minute. The exit code is 1
if the email is not sent: hardfail, bounced or held.
--from     sender; its domain must be verified, except simulator.test with a test key
--to       recipient
--subject  subject (default: Hello from Postrider)
--text     plain text body; --html: HTML body
--template  name or id of a template, instead of subject and texts; --variables: its values, a JSON object
--at       when to send it: ISO 8601 with a zone, or Unix seconds; at most 30 days ahead. The command then does not wait
--key      API key (default: the environment variable POSTRIDER_KEY)
--url      URL of the service (default: the environment variable POSTRIDER_URL, or http://127.0.0.1:$PORT)

Example: postrider send --from hello@simulator.test --to delivered@simulator.test`,
  options: {
    from: { type: 'string' },
    to: { type: 'string' },
    subject: { type: 'string' },
    text: { type: 'string' },
    html: { type: 'string' },
    at: { type: 'string' },
    template: { type: 'string' },
    variables: { type: 'string' },
    key: { type: 'string' },
    url: { type: 'string' },
    ...jsonOption,
  },
  run(given, deps) {
    const { POSTRIDER_KEY, POSTRIDER_URL, PORT } = deps.environment
    const key = text(given, 'key') ?? POSTRIDER_KEY
    if (!key) throw new UsageError('--key is required (or set POSTRIDER_KEY)')
    const url = text(given, 'url') ?? (POSTRIDER_URL || `http://127.0.0.1:${PORT || '3025'}`)
    const message = {
      from: needed(given, 'from'),
      to: [needed(given, 'to')],
      ...contentIn(given),
      scheduledAt: text(given, 'at') ?? null,
    }
    return withRemote(url, key, async (api) => {
      const { id, scheduledAt } = await api.emails.send(message)
      const isJson = given.options.json === true
      if (scheduledAt !== undefined) {
        deps.print(isJson ? JSON.stringify({ id, status: 'pending', scheduledAt }) : `${id} ${shade('pending')} until ${scheduledAt}`)
        return
      }
      if (!isJson) deps.print(`${id} ${shade('pending')}`)
      let printedAttempts = 0
      const untilMs = deps.clock.monotonicMs() + followForMs
      for (;;) {
        const { status, deliveries } = await api.emails.retrieveDeliveries(id, {}, { maxRetries })
        if (!isJson)
          for (const one of deliveries.slice(printedAttempts))
            deps.print(`${one.timestampIso} ${shade(one.status)}: ${plain(one.details)}${one.output ? `\n  ${plain(one.output)}` : ''}`)
        printedAttempts = deliveries.length
        if (finalStates.includes(status) || deps.clock.monotonicMs() > untilMs) {
          if (isJson) deps.print(JSON.stringify({ id, status, deliveries }))
          if (failedStates.includes(status)) throw new Error(`${status}: postrider email show ${id} explains it`)
          return
        }
        await pause(deps.clock, askEveryMs)
      }
    })
  },
}

function contentIn(given: CommandArguments) {
  const templateId = text(given, 'template')
  const parts = { subject: text(given, 'subject'), text: text(given, 'text'), html: text(given, 'html') }
  if (templateId === undefined) {
    if (text(given, 'variables') !== undefined) throw new UsageError('--variables needs --template')
    return { subject: parts.subject ?? 'Hello from Postrider', text: parts.text ?? 'It works.', html: parts.html ?? null }
  }
  if (Object.values(parts).some((part) => part !== undefined)) throw new UsageError('--template replaces --subject, --text and --html')
  return { templateId, variables: objectOf(given, 'variables') ?? {} }
}
