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
  summary: 'send what happened in a time to a webhook again',
  help: `postrider webhook replay ID --after T --before T [--json]

Queues every event between two moments (unix seconds, both exclusive) that the webhook hears of, to be sent to it again in their
order, each under the id it had before. ID is a webhook's id or uuid. Prints how many events that are.`,
  options: { after: { type: 'string' }, before: { type: 'string' }, ...jsonOption },
  positionals: ['ID'],
  async run(given, deps) {
    const [id = ''] = given.positionals
    const range = { after: moment(given, 'after'), before: moment(given, 'before') }
    const queued = await deps.withInstallation(({ db }) => replayRange(db, id, null, range))
    printed(given, deps, { queued }, queued === 1 ? '1 event is sent again' : `${queued} events are sent again`)
  },
}

export const webhookRotateKey: Command = {
  name: 'webhook rotate-key',
  audited: true,
  summary: 'have requests to webhooks signed with a new key',
  help: `postrider webhook rotate-key [--json]

Makes a new RSA key for the signatures that receivers check with /.well-known/jwks.json. It is published within a minute and signs
after two hours, when no receiver can have an older set any more. The key that signs now does so until then, and stays published for
31 days after. The secrets of webhooks stay as they are: those change over the API, with rotateSecret.`,
  options: { ...jsonOption },
  async run(given, deps) {
    const { kid, signsFrom } = await deps.withInstallation(rotateInstallationKey)
    const from = signsFrom.toISOString()
    printed(given, deps, { kid, signsFrom: from }, `the key ${kid} is published and signs from ${from} on`)
  },
}
