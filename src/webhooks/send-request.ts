/** Sends one signed request to a webhook and builds its delivery record. */
import { createHash } from 'node:crypto'
import type { Clock, EndedSpan, Ids, Secrets, Traces } from '#base'
import type { Post, PostOutcome } from '#net'
import type { NewDelivery } from './delivery-records.ts'
import { formats } from './formats.ts'
import { openedSecrets, type StoredWebhook } from './manage-webhooks.ts'
import { signedHeaders } from './sign-request.ts'
import type { InstallationKey } from './signing-keys.ts'

export interface RequestDeps {
  clock: Clock
  ids: Ids
  secrets: Secrets
  post: Post
  traces: Traces | undefined
  keys: () => Promise<InstallationKey[]>
  config: { webhookSignatureHeader: string }
  /** The program's version, for the User-Agent. */
  version: string
}

export interface WebhookRequest {
  /** Of the event for this webhook. */
  uuid: string
  event: string
  /** The event's email, if it has one. */
  emailId?: string | null
  /** The id of the email's message, which is that of its content; absent: no longer known. */
  messageId?: string | undefined
  /** The event's email was for the simulator; absent: unknown. */
  isTest?: boolean | undefined
  /** Of a MessageHeld; absent: not recorded. */
  holdReason?: string | undefined
  /** The event suppressed the email's recipient; absent: unknown. */
  isSuppressed?: boolean | undefined
  /** The event's tenant. */
  tenantId: string
  attempt: number
  body: Buffer
  withinMs: number
}

export interface WebhookResponse {
  outcome: PostOutcome
  /** A 2xx response. */
  success: boolean
  /** The record except `willRetry`. */
  delivery: Omit<NewDelivery, 'willRetry'>
}

export type Send = (webhook: StoredWebhook, request: WebhookRequest) => Promise<WebhookResponse>

export function openSend(deps: RequestDeps): Send {
  const { clock, ids, secrets, post, config, version } = deps
  /** Caches unsealed secrets: unsealing takes as long as signing, and rows are read again every half second. */
  const unsealed = new WeakMap<StoredWebhook, Buffer[]>()
  const secretsOf = (webhook: StoredWebhook, nowMs: number) => {
    const known = unsealed.get(webhook) ?? openedSecrets(webhook, secrets, nowMs)
    unsealed.set(webhook, known)
    return known
  }
  return async (webhook, request) => {
    const { uuid, event, tenantId, attempt, withinMs } = request
    const format = formats[webhook.format] ?? formats.postrider
    const [key] = await deps.keys()
    if (!key) throw new Error('no signing key')
    const nowMs = clock.nowMs()
    const secretsNow = secretsOf(webhook, nowMs)
    const [secret] = secretsNow
    if (!secret) throw new Error('no webhook secret')
    const { holdReason, isTest = false, isSuppressed = false } = request
    const body = format.body(request.body, request.messageId, { secret, nowMs, isTest, holdReason, isSuppressed })
    const by = { secrets: secretsNow, key, signatureHeader: config.webhookSignatureHeader, version }
    const signed = { uuid, event, attempt, body, nowMs }
    const own = await signedHeaders(signed, by)
    const headers = { ...own, ...(await format.headers(signed, { key, secret, own })) }
    const outcome = await post.post({ url: webhook.url, headers, body, withinMs })
    const { statusCode, body: responseBody, durationMs, error } = outcome
    deps.traces?.note(attemptSpan(webhook, request, outcome))
    const success = isSuccess(statusCode)
    const delivery = {
      id: ids.uuid(),
      webhookId: webhook.id,
      tenantId,
      eventUuid: uuid,
      event,
      url: webhook.url,
      attempt,
      success,
      statusCode,
      at: new Date(nowMs),
      requestHeaders: headers,
      payload: body.toString(),
      responseBody,
      durationMs,
      error,
      ...(request.emailId === undefined ? {} : { emailId: request.emailId }),
    }
    return { outcome, success, delivery }
  }
}

/** The trace span of the attempt. The URL may contain a secret, so only its host is recorded. */
function attemptSpan(webhook: StoredWebhook, { uuid, event, emailId, tenantId, attempt }: WebhookRequest, outcome: PostOutcome): EndedSpan {
  const { statusCode, durationMs } = outcome
  return {
    name: 'webhook attempt',
    kind: 'client',
    durationMs,
    emailId,
    attributes: {
      'http.request.method': 'POST',
      'http.response.status_code': statusCode,
      'server.address': new URL(webhook.url).hostname,
      'postrider.tenant.id': tenantId,
      'postrider.webhook.id': webhook.uuid,
      'postrider.event': event,
      'postrider.event.id': uuid,
      'postrider.attempt': attempt,
    },
    error: isSuccess(statusCode) ? undefined : String(statusCode ?? 'no response'),
  }
}

const isSuccess = (statusCode: number | null) => statusCode !== null && statusCode >= 200 && statusCode < 300

/** The same for an event and a webhook on every attempt and after a crash: a version 5 UUID (RFC 9562) of the event's number. */
export function eventUuid(webhook: { uuid: string }, eventId: number): string {
  const hash = createHash('sha1')
    .update(Buffer.from(webhook.uuid.replaceAll('-', ''), 'hex'))
    .update(`event ${eventId}`)
    .digest()
  hash[6] = ((hash[6] as number) & 0x0f) | 0x50
  hash[8] = ((hash[8] as number) & 0x3f) | 0x80
  const hex = hash.toString('hex', 0, 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
