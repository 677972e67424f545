/** Commands for webhooks: list, add, remove, test, replay, and the rotation of the signing key. */
import type { Webhook } from '#client'
import { rotateInstallationKey, type WebhookEvent, webhookEvents, webhookFormats } from '#webhooks'
import { apiHelp, apiUsage, plain, scopeOf, tenantApiOptions, withApi } from './api.ts'
import { type Command, type CommandArguments, jsonOption, needed, printed, text, UsageError } from './command-definition.ts'
import { shade } from './styles.ts'

const ofScope = '--tenant      a webhook of this tenant (default: of the organisation, which gets the events of all tenants)'

/** The end of the year 9999. */
const latestSecond = 253_402_300_799

function secondsOf(given: CommandArguments, name: string): number {
  const value = needed(given, name)
  if (!/^\d{1,12}$/.test(value) || Number(value) > latestSecond) throw new UsageError(`--${name} must be a time in unix seconds`)
  return Number(value)
}

function eventOf(name: string, option: string): WebhookEvent {
  const known = webhookEvents.find((one) => one === name)
  if (known === undefined) throw new UsageError(`--${option}: "${name}" is not one of ${webhookEvents.join(', ')}`)
  return known
}

const line = ({ id, name, url, events, allEvents, enabled, disabledReason, failingSince }: Webhook) =>
  [
    `${id.padEnd(12)}${plain(name)}  ${plain(url)}`,
    allEvents ? 'all events' : events.join(' '),
    ...(enabled ? [] : [disabledReason === 'endpoint_gone' ? 'disabled: returned 410 Gone' : 'disabled']),
    ...(failingSince === null ? [] : [`failing since ${failingSince}`]),
  ].join(', ')

export const webhookList: Command = {
  name: 'webhook list',
  summary: 'list webhooks and their status',
  help: `postrider webhook list [--tenant ID] ${apiUsage}

Lists the webhooks of the organisation, or of one tenant, without secrets. For their deliveries use the dashboard or GET /v1/webhooks.
${apiHelp}

Example: postrider webhook list --json`,
  options: tenantApiOptions,
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const { webhooks } = await scopeOf(service, given).webhooks.list()
      const owner = text(given, 'tenant') === undefined ? 'the organisation' : 'this tenant'
      printed(given, deps, { webhooks }, webhooks.map(line).join('\n') || `${owner} has no webhooks. To add one: postrider webhook add URL`)
    }),
}

export const webhookAdd: Command = {
  name: 'webhook add',
  audited: 'unnamed',
  summary: 'add a webhook and print its secret once',
  help: `postrider webhook add URL [--name N] [--events A,B] [--format postal|ses] [--tenant ID] ${apiUsage}

Adds a webhook, which receives a signed POST for each event, and prints the secret of its signatures once.
--name        name in lists (default: the host of the URL)
--events      only these events: ${webhookEvents.slice(0, 4).join(', ')},
              ${webhookEvents.slice(4, 8).join(', ')} (default: these and the two of send limits),
              ${webhookEvents.slice(8).join(', ')}
--format      postal: bodies and signatures as Postal sends them; ses: bodies as Amazon SES publishes them (default: postrider)
${ofScope}
${apiHelp}

Example: postrider webhook add https://shop.example.com/hooks/mail --events MessageBounced,MessageDeliveryFailed`,
  options: { name: { type: 'string' }, events: { type: 'string' }, format: { type: 'string' }, ...tenantApiOptions },
  values: { events: webhookEvents, format: webhookFormats },
  positionals: ['URL'],
  run(given, deps) {
    const [url = ''] = given.positionals
    const events = text(given, 'events')
      ?.split(',')
      .map((name) => eventOf(name.trim(), 'events'))
    const format = webhookFormats.find((one) => one === (text(given, 'format') ?? 'postrider'))
    if (!format) throw new UsageError(`--format must be one of ${webhookFormats.join(', ')}`)
    if (!URL.canParse(url)) throw new UsageError(`the URL of the webhook is not valid: ${url}`)
    return withApi(given, deps, async (service) => {
      const wanted = { name: text(given, 'name') ?? new URL(url).host, url, format, ...(events ? { events } : { allEvents: true }) }
      const webhook = await scopeOf(service, given).webhooks.create(wanted)
      printed(given, deps, { ...webhook }, `${line(webhook)}\n\n${webhook.secret}\n\nStore this secret now: it verifies the signatures.`)
    })
  },
}

export const webhookRemove: Command = {
  name: 'webhook remove',
  audited: true,
  summary: 'remove a webhook',
  help: `postrider webhook remove ID [--tenant ID] ${apiUsage}

Removes a webhook; requests that wait for it are not sent. postrider webhook list prints the ids.
--tenant      tenant of the webhook (default: any)
${apiHelp}

Example: postrider webhook remove 1041822`,
  options: tenantApiOptions,
  positionals: ['ID'],
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const [id = ''] = given.positionals
      await scopeOf(service, given).webhooks.delete(id)
      printed(given, deps, { id, removed: true }, `webhook ${id} is removed`)
    }),
}

export const webhookTest: Command = {
  name: 'webhook test',
  audited: true,
  summary: 'send one sample request to a webhook now',
  help: `postrider webhook test ID [--event E] [--tenant ID] ${apiUsage}

Sends a signed sample request and prints the response. The exit code is 1 if the response is not 2xx.
--event       event of the sample (default: ${webhookEvents[0]})
--tenant      tenant of the webhook (default: any)
${apiHelp}

Example: postrider webhook test 1041822 --event MessageBounced`,
  options: { event: { type: 'string' }, ...tenantApiOptions },
  values: { event: webhookEvents },
  positionals: ['ID'],
  async run(given, deps) {
    const [id = ''] = given.positionals
    const event = eventOf(text(given, 'event') ?? webhookEvents[0], 'event')
    const isGood = await withApi(given, deps, async (service) => {
      const result = await scopeOf(service, given).webhooks.test(id, { event })
      const { success, statusCode, durationMs, body, error } = result
      const answer = statusCode === null ? `no response: ${plain(error ?? '')}` : `status ${statusCode} in ${durationMs} ms`
      const lines = [`${shade(success ? 'ok' : 'problem')}: ${answer}`, ...(body ? [plain(body)] : [])]
      printed(given, deps, { ...result }, lines.join('\n'))
      return success
    })
    if (!isGood) throw new Error('the webhook did not answer with a 2xx status')
  },
}

export const webhookReplay: Command = {
  name: 'webhook replay',
  audited: true,
  summary: 'send the events of a period to a webhook again',
  help: `postrider webhook replay ID --after T --before T [--tenant ID] ${apiUsage}

Sends the webhook's events between two times (unix seconds, both exclusive) again, in order, each with its original id. ID is the id or
uuid of a webhook. Prints the number of events.
--tenant      tenant of the webhook (default: any)
${apiHelp}

Example: postrider webhook replay 1041822 --after 1767225600 --before 1767312000`,
  options: { after: { type: 'string' }, before: { type: 'string' }, ...tenantApiOptions },
  positionals: ['ID'],
  run(given, deps) {
    const [id = ''] = given.positionals
    const range = { after: secondsOf(given, 'after'), before: secondsOf(given, 'before') }
    return withApi(given, deps, async (service) => {
      const { queued } = await scopeOf(service, given).webhooks.replay(id, range)
      printed(given, deps, { queued }, queued === 1 ? '1 event queued' : `${queued} events queued`)
    })
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
