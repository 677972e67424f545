/** `postrider import webhooks`: adds the webhooks of an account at another service. */
import { importWebhooks, listWebhooksAt, patientGet, type WebhookLine, type WebhooksReport, webhookVendors } from '#imports'
import type { Installation } from '#installation'
import { openGuard, openPost, openResolver } from '#net'
import { openTenants } from '#tenants'
import { openWebhooks, type Webhooks } from '#webhooks'
import { plain } from './api.ts'
import { tenantOf } from './command-arguments.ts'
import { type Command, jsonOption, needed, printed, text, UsageError } from './command-definition.ts'

export const importWebhooksCommand: Command = {
  name: 'import webhooks',
  audited: 'unnamed',
  summary: 'add the webhooks of an account at another service',
  help: `postrider import webhooks --from VENDOR [--key KEY] [--api URL] [--dry-run] [--tenant ID] [--json]

Asks the API of the service for its webhooks, and adds those whose URL no webhook of the tenant has. Each gets the service's format of bodies and
signatures, the events that Postrider has too, and a new secret, printed once. Webhooks that are disabled there are added disabled. Both services
send events to a URL that both have, each about its own mail. The command may be repeated.
--from     ${webhookVendors.join(', ')}
--key      key of the service that may read webhooks; for Postmark the token of a server (default: the variable VENDOR_KEY, which other users of
           the machine cannot see)
--api      scheme and host of the API, such as https://api.eu.mailgun.net (default: the usual one)
--dry-run  compares, and adds nothing
--tenant   the tenant that gets the webhooks (default: the default tenant)

Example: VENDOR_KEY=re_123 postrider import webhooks --from resend --dry-run`,
  options: {
    from: { type: 'string' },
    key: { type: 'string' },
    api: { type: 'string' },
    'dry-run': { type: 'boolean' },
    tenant: { type: 'string' },
    ...jsonOption,
  },
  values: { from: webhookVendors },
  run(given, deps) {
    const from = needed(given, 'from')
    const vendor = webhookVendors.find((one) => one === from)
    if (!vendor) throw new UsageError(`--from must be one of ${webhookVendors.join(', ')}: ${from}`)
    const key = text(given, 'key') ?? deps.environment.VENDOR_KEY
    if (!key || !/^[\x21-\x7e]+$/.test(key)) throw new UsageError('give --key, or set VENDOR_KEY')
    const dryRun = given.options['dry-run'] === true
    return deps.withInstallation(async (installation) => {
      const tenant = await tenantOf(installation, text(given, 'tenant'))
      const { post, webhooks } = outboundOf(installation)
      const found = await listWebhooksAt({ vendor, key, apiUrl: text(given, 'api') }, patientGet(post.get, installation.clock))
      const report = await importWebhooks(found, { tenantId: tenant.id, vendor, dryRun }, { webhooks, look: (url) => post.look(url) })
      printed(given, deps, { dryRun, tenantId: tenant.id, ...report }, shown(report, vendor, dryRun))
    })
  },
}

/** The guarded requests, and the webhooks that check their URLs with them. */
export function outboundOf({ db, clock, ids, random, secrets, config, version }: Installation): {
  post: ReturnType<typeof openPost>
  webhooks: Webhooks
} {
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const post = openPost({ resolver, guard: openGuard(config.allowedNetworks), openedNetworks: config.allowedNetworks, clock })
  return { post, webhooks: openWebhooks({ db, clock, ids, random, secrets, tenants: openTenants({ db, clock }), post, config, version }) }
}

function shown({ found, webhooks }: WebhooksReport, vendor: string, dryRun: boolean): string {
  const count = (state: WebhookLine['state']) => webhooks.filter((one) => one.state === state).length
  const failed = count('failed')
  const counts = [
    dryRun ? `${count('missing')} missing` : `${count('added')} added`,
    `${count('existing')} here already`,
    ...(failed > 0 ? [`${failed} cannot come`] : []),
  ]
  const next = dryRun
    ? ['', 'Nothing was changed. To add the missing webhooks, run the command again without --dry-run.']
    : count('added') > 0
      ? ['', 'Store the secrets now, and give each receiver its own: it verifies the signatures.']
      : []
  return [
    `${found === 1 ? '1 webhook' : `${found} webhooks`} at ${vendor}: ${counts.join(', ')}`,
    ...webhooks.flatMap(linesOf),
    ...next,
  ].join('\n')
}

function linesOf({ url, events, enabled, state, notes, problem, secret, publicKey }: WebhookLine): string[] {
  return [
    `  ${state.padEnd(9)}${plain(url)}${enabled ? '' : '  (disabled)'}`,
    ...(events.length > 0 ? [`           ${events.join(' ')}`] : []),
    ...notes.map((note) => `           ${plain(note)}`),
    ...(problem === undefined ? [] : [`           ${plain(problem)}`]),
    ...(publicKey === undefined ? [] : [`           public key ${publicKey}`]),
    ...(secret === undefined ? [] : [`           secret ${secret}`]),
  ]
}
