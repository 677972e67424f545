/** Tools that answer questions about the queue, the suppression lists, the webhooks, usage and the installation. */
import Type from 'typebox'
import { Refusal } from '#base'
import { classify } from '#bounces'
import { searchInSnapshot } from '#db'
import { readQueue } from '#delivery'
import { listAudit } from '#members'
import { Limit, suppressionOf, TenantId, usualLimit } from './email-tools.ts'
import { facts, fieldsOf, listOf, question, type Tool } from './tool.ts'

const maxQueues = 20

const tooLong = () =>
  new Refusal('validation_error', { message: 'the queue is too long to be counted in 25 seconds', suggestion: 'Set tenantId' })

const queue = question({
  name: 'queue',
  title: 'Show the queue',
  description:
    'Queued live mail by recipient domain, with counts, pauses and the reasons for delays. A key of the organisation also gets the limits of each provider.',
  input: Type.Object({ tenantId: TenantId }),
  async read({ tenantId }, { db, clock, caller, quote }) {
    caller.require({ permission: 'emails:read', scope: 'organisation or tenant' })
    const own = caller.credential.tenantId
    // An endpoint refuses other tenants and unknown ones.
    if (tenantId !== undefined) await caller.call('emails.list', { query: { tenantId, perPage: 1 } })
    const found = await caller.search(() =>
      searchInSnapshot(db, tooLong, (tx) => readQueue(tx, own ?? tenantId ?? null, maxQueues, clock.nowMs())),
    )
    const recipientDomains = found.recipientDomains.map(({ recipientDomain, delayReason, pauseReason, lastReply, nextDueAt, ...one }) => ({
      ...facts({ ...one }, ['ready', 'sending', 'deferred', 'overLimit', 'held', 'oldestEmailId']),
      nextDueAt: nextDueAt?.toISOString() ?? null,
      paused: pauseReason !== null,
      untrusted: {
        recipientDomain: quote.text(recipientDomain),
        delayReason: quote.text(delayReason),
        pauseReason: quote.text(pauseReason),
        lastReply: quote.text(lastReply?.details),
      },
    }))
    if (own !== null) return { recipientDomains }
    return {
      recipientDomains,
      pauses: found.pauses.slice(0, maxQueues).map((one) => ({
        ...facts({ ...one }, ['kind', 'tenantId']),
        untrusted: { name: quote.text(one.name), reason: quote.text(one.reason) },
      })),
      providers: found.providers.slice(0, maxQueues).map((one) => ({
        ...facts({ ...one }, ['source', 'connections', 'connectionsOpen', 'rate']),
        backoffUntil: one.backoffUntilMs === null ? null : new Date(one.backoffUntilMs).toISOString(),
        untrusted: { provider: quote.text(one.provider), cause: quote.text(one.cause) },
      })),
    }
  },
})

const classifyReply = question({
  name: 'classify_reply',
  title: 'Classify a bounce text',
  description:
    'The meaning of a reply or a bounce text of a mail server: its classification, who can correct the failure, and whether it is permanent.',
  input: Type.Object({
    text: Type.String({ minLength: 1, maxLength: 4096 }),
    code: Type.Optional(Type.Integer({ minimum: 200, maximum: 599, description: 'SMTP reply code; default: from the text' })),
    enhanced: Type.Optional(Type.String({ maxLength: 12, description: 'Enhanced status code; default: from the text' })),
  }),
  read: async ({ text, code, enhanced }) => ({ ...classify({ text, code: code ?? null, enhanced: enhanced ?? null }) }),
})

const doctor = question({
  name: 'doctor',
  title: 'Check the installation',
  description:
    'The checks of postrider doctor with their remedies: DNS, port 25, blocklists, certificates, clock, disk, database. Takes up to 30 seconds.',
  input: Type.Object({}),
  async read(_given, { caller, quote, runChecks }) {
    caller.require({ permission: 'full access', scope: 'organisation' })
    const results = await runChecks()
    const of = (status: string) => results.filter((one) => one.status === status).length
    return {
      counts: { ok: of('ok'), warning: of('warning'), problem: of('problem'), unknown: of('unknown') },
      checks: results.map(({ status, check, detail, remedy }) => ({
        status,
        // The details quote DNS records and greetings of other servers.
        untrusted: { check: quote.text(check), detail: quote.text(detail, 500), remedy: quote.text(remedy, 500) },
      })),
    }
  },
})

const listSuppressions = question({
  name: 'list_suppressions',
  title: 'List suppressed addresses',
  description: 'Suppressed addresses, newest first, with reason and time; optionally only those that contain a text.',
  input: Type.Object({
    address: Type.Optional(Type.String({ maxLength: 320, description: 'Part of the address' })),
    page: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    limit: Limit,
    tenantId: TenantId,
  }),
  async read({ limit = usualLimit, ...query }, context) {
    const all = context.caller.credential.tenantId === null && query.tenantId === undefined ? true : undefined
    const { data, total } = await context.caller.call('suppressions.list', { query: { ...query, all, perPage: limit } })
    return { suppressions: listOf(data).map((one) => suppressionOf(one, context)), total: total ?? null }
  },
})

const maxFailing = 5
const failuresShown = 3

const failingWebhooks = question({
  name: 'failing_webhooks',
  title: 'Show failing webhooks',
  description:
    'Webhooks that fail or are disabled, each with its newest failed requests and their ids. replay_webhook_delivery repeats one.',
  input: Type.Object({ tenantId: TenantId }),
  async read({ tenantId }, context) {
    const { caller, quote } = context
    const all = caller.credential.tenantId === null && tenantId === undefined ? true : undefined
    const { data } = await caller.call('webhooks.list', { query: { tenantId, all } })
    const webhooks = listOf(fieldsOf(data).webhooks)
    const failing = webhooks.filter((one) => one.failingSince !== null || one.enabled === false)
    const shown = []
    for (const one of failing.slice(0, maxFailing)) {
      const query = { success: false, perPage: failuresShown }
      const failures = await caller.call('webhooks.listDeliveries', { params: { webhookId: String(one.id) }, query })
      shown.push({
        ...facts(one, ['id', 'tenantId', 'enabled', 'disabledAt', 'disabledReason', 'failingSince']),
        untrusted: { name: quote.text(one.name), url: quote.text(one.url) },
        failures: listOf(failures.data).map((each) =>
          facts(each, ['id', 'event', 'attempt', 'statusCode', 'willRetry', 'nextAttemptAt', 'timestamp']),
        ),
      })
    }
    return { webhooks: webhooks.length, failing: failing.length, shown }
  },
})

const usage = question({
  name: 'usage',
  title: 'Show usage',
  description: 'Counts of emails by outcome, and the delivery and bounce rates, in a period.',
  input: Type.Object({
    period: Type.Optional(
      Type.String({ maxLength: 64, description: 'today, yesterday, last_7_days, last_30_days, this_month, 2026-11 and others' }),
    ),
    timezone: Type.Optional(Type.String({ maxLength: 64 })),
    tenantId: TenantId,
  }),
  async read({ tenantId, ...query }, { caller }) {
    const of = caller.credential.tenantId ?? tenantId
    if (of !== undefined && tenantId !== undefined && of !== tenantId) await caller.call('emails.list', { query: { tenantId, perPage: 1 } })
    const { data } = await (of === undefined
      ? caller.call('usage.retrieve', { query })
      : caller.call('usage.retrieveTenant', { params: { tenantId: of }, query }))
    const found = fieldsOf(data)
    const counts = ['sent', 'delivered', 'soft_failed', 'hard_failed', 'bounced', 'held', 'test']
    return {
      ...facts(found, ['tenant_id']),
      period: facts(fieldsOf(found.period), ['start', 'end']),
      emails: facts(fieldsOf(found.emails), counts),
      rates: facts(fieldsOf(found.rates), ['delivery_rate', 'bounce_rate']),
      ...(found.tenants === undefined ? {} : { tenants: facts(fieldsOf(found.tenants), ['total', 'active', 'withActivity']) }),
    }
  },
})

const limits = question({
  name: 'limits',
  title: 'Show the limits',
  description: "The rate limit of the key, and the organisation's send limit with its use in this hour.",
  input: Type.Object({}),
  async read(_given, { caller }) {
    const found = fieldsOf((await caller.call('limits.retrieve', {})).data)
    return {
      rateLimit: facts(fieldsOf(found.rateLimit), ['limit', 'remaining', 'reset', 'period']),
      sendLimit: facts(fieldsOf(found.sendLimit), ['limit', 'used', 'remaining', 'usagePercent', 'approaching', 'exceeded', 'resetsAt']),
    }
  },
})

const maxChanges = 50
const minuteMs = 60_000

const whatChanged = question({
  name: 'what_changed',
  title: 'Show recent changes',
  description: 'The newest changes in the audit log: who changed what and when, in the dashboard, with a key or by a command.',
  input: Type.Object({
    minutes: Type.Optional(Type.Integer({ minimum: 1, maximum: 44_640, description: 'How far back; default: a day' })),
    action: Type.Optional(Type.String({ maxLength: 100, description: 'Only actions that begin with this, such as domains.' })),
    tenantId: TenantId,
  }),
  async read({ minutes = 1440, action, tenantId }, { db, clock, caller, quote }) {
    caller.require({ permission: 'full access', scope: 'organisation or tenant' })
    if (tenantId !== undefined) await caller.call('emails.list', { query: { tenantId, perPage: 1 } })
    const from = new Date(clock.nowMs() - minutes * minuteMs)
    const filter = { tenantId: caller.credential.tenantId ?? tenantId ?? null, action, withoutReads: true, from }
    const { entries } = await caller.search(() => listAudit(db, filter, { number: 1, size: maxChanges }))
    return {
      changes: entries.map(({ at, actor, action: done, tenantId: of, data }) => ({
        at: at.toISOString(),
        by: actor.kind,
        action: done,
        tenantId: of,
        untrusted: { name: quote.text(actor.name), details: quote.fields(data) },
      })),
    }
  },
})

export const installationTools: readonly Tool[] = [
  queue,
  classifyReply,
  doctor,
  listSuppressions,
  failingWebhooks,
  usage,
  limits,
  whatChanged,
]
