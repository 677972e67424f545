/** Commands for webhooks. */
import { replayRange, rotateInstallationKey } from '#webhooks'
import { type Command, type CommandArguments, jsonOption, needed, printed, UsageError } from './command-definition.ts'

/** The end of the year 9999. */
const latestSecond = 253_402_300_799

function moment(given: CommandArguments, name: string): Date {
  const text = needed(given, name)
  if (!/^\d{1,12}$/.test(text) || Number(text) > latestSecond) throw new UsageError(`--${name} must be a time in unix seconds`)
  return new Date(Number(text) * 1000)
}

export const webhookReplay: Command = {
  name: 'webhook replay',
  audited: true,
  summary: 'send the events of a period to a webhook again',
  help: `postrider webhook replay ID --after T --before T [--json]

Sends the webhook's events between two times (unix seconds, both exclusive) again, in order, each with its original id. ID is the id or
uuid of a webhook. Prints the number of events.`,
  options: { after: { type: 'string' }, before: { type: 'string' }, ...jsonOption },
  positionals: ['ID'],
  async run(given, deps) {
    const [id = ''] = given.positionals
    const range = { after: moment(given, 'after'), before: moment(given, 'before') }
    const queued = await deps.withInstallation(({ db }) => replayRange(db, id, null, range))
    printed(given, deps, { queued }, queued === 1 ? '1 event queued' : `${queued} events queued`)
  },
}

export const webhookRotateKey: Command = {
  name: 'webhook rotate-key',
  audited: true,
  summary: 'sign webhook requests with a new RSA key',
  help: `postrider webhook rotate-key [--json]

Creates a new RSA key for the signatures that receivers verify with /.well-known/jwks.json. The new key is published within one minute and
signs after two hours, when no receiver has an older key set cached. Until then the current key signs; it stays published for another
31 days. Webhook secrets do not change: rotate those through the API with rotateSecret.`,
  options: { ...jsonOption },
  async run(given, deps) {
    const { kid, signsFrom } = await deps.withInstallation(rotateInstallationKey)
    const from = signsFrom.toISOString()
    printed(given, deps, { kid, signsFrom: from }, `key ${kid} is published and signs from ${from}`)
  },
}
