/** `postrider listen`: prints events live, and forwards them, signed, to a receiver under development. */
import ipaddr from 'ipaddr.js'
import type { Network } from '#base'
import { openGuard, openPost, openResolver, type PostOutcome } from '#net'
import { openTenants } from '#tenants'
import {
  allEventNames,
  openEventStream,
  openForward,
  parseEventNames,
  type StreamEvent,
  type WebhookEmailEvent,
  webhookBody,
  webhookEmailEvents,
} from '#webhooks'
import { type Command, jsonOption, text, UsageError } from './command-definition.ts'

/** The operator chooses the forwarding target, so all addresses are allowed. */
const everywhere: Network[] = ['0.0.0.0/0', '::/0'].map((network) => ipaddr.parseCIDR(network))

export const listen: Command = {
  name: 'listen',
  summary: 'print events as they happen, and forward them to a local URL',
  help: `postrider listen [--forward URL] [--tenant ID] [--events A,B] [--json]

Prints events as they happen, until Ctrl-C. The service must be running.
--forward   also posts each event to this URL, with the body, headers and signatures of a webhook: one at a time, once each.
            The command creates a signing secret for this run and prints it first. Any address is allowed, also http://localhost
--tenant    only events of this tenant
--events    only these: ${webhookEmailEvents.slice(0, 5).join(', ')},
            ${webhookEmailEvents.slice(5, allEventNames.length).join(', ')} (default: all of these),
            ${webhookEmailEvents.slice(allEventNames.length).join(', ')}
--json      prints one JSON object per line: the webhook body, plus "forwarded" if it was forwarded`,
  options: { forward: { type: 'string' }, tenant: { type: 'string' }, events: { type: 'string' }, ...jsonOption },
  async run(given, deps) {
    const url = text(given, 'forward')
    if (url !== undefined && !/^https?:\/\//i.test(url)) throw new UsageError('--forward must start with http:// or https://')
    const events = namesIn(text(given, 'events'))
    const tenantId = text(given, 'tenant') ?? null
    const isJson = given.options.json === true
    const stopped = new AbortController()
    await deps.withInstallation(
      async (installation) => {
        const { config, clock } = installation
        if (tenantId !== null && !(await openTenants(installation).find(tenantId))) throw new UsageError(`no such tenant: ${tenantId}`)
        const live = openEventStream({ ...installation, publicUrl: config.publicUrl })
        const after = await live.endOfLog()
        const resolver = openResolver({ servers: config.resolvers, clock, ids: installation.ids })
        const post = openPost({ resolver, guard: openGuard(everywhere), openedNetworks: everywhere, clock })
        const forward = url === undefined ? undefined : openForward(url, { ...installation, post })
        void deps.untilSignal().then(() => stopped.abort())
        if (isJson) deps.print(JSON.stringify({ listening: true, ...(forward ? { forward: url, secret: forward.secret } : {}) }))
        else deps.print(forward ? `forwarding to ${url}, signed with ${forward.secret}` : 'listening')
        for await (const step of live.follow({ after, tenantId, events }, stopped.signal)) {
          for (const one of step.events) {
            if (stopped.signal.aborted) return
            if (!isJson) deps.print(lineOf(one))
            const forwarded = forward && (await forward.send(one))
            if (isJson) deps.print(JSON.stringify({ ...webhookBody(one), ...(forwarded ? { forwarded: shown(forwarded) } : {}) }))
            else if (forwarded) deps.print(`  ${answerOf(forwarded)}`)
          }
        }
      },
      { whileServing: true },
    )
  },
}

function namesIn(given: string | undefined): ReadonlySet<WebhookEmailEvent> | null {
  if (given === undefined) return null
  const parsed = parseEventNames(given)
  if ('names' in parsed) return parsed.names
  throw new UsageError(`--events: "${parsed.unknown}" is not one of ${webhookEmailEvents.join(', ')}`)
}

const shown = ({ statusCode, durationMs, error }: PostOutcome) => ({ statusCode, durationMs, error })

const answerOf = ({ statusCode, durationMs, error }: PostOutcome) =>
  statusCode === null ? `-> no response: ${error} (${durationMs} ms)` : `-> ${statusCode} in ${durationMs} ms`

/** Removes terminal control characters, because subjects and replies come from outside. */
const plain = (words: string) => words.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')

const wordOf = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? String(value) : '')

function lineOf({ event, timestamp, payload }: StreamEvent): string {
  const { message, original_message: original, domain, volume, limit, details, url, address, reason } = payload
  const { token, to, subject } = (message ?? original ?? {}) as Partial<Record<string, string>>
  const limits = volume === undefined ? '' : `${wordOf(volume)} of ${wordOf(limit)} emails`
  const about = token === undefined ? wordOf(address) || wordOf(domain) || limits : `${token} to ${to} "${subject}"`
  const more = [wordOf(details), wordOf(url), wordOf(reason)].filter((one) => one !== '').join(' ')
  return plain(`${new Date(timestamp * 1000).toISOString()} ${event} ${about}${more === '' ? '' : `: ${more}`}`)
}
