/**
 * Backend of the submission ports (contract section 15): an SMTP login and its mail, passed to acceptance as a raw message, with the API's
 * limits, suppressions, domain rules and idempotency.
 */
import { createHash } from 'node:crypto'
import type { Accept, AcceptedSubmission, Caller } from '#accept'
import { type Clock, type EndedSpan, type Log, networkOf, pause, Refusal, type Traces } from '#base'
import type { Credentials } from '#credentials'
import { dateText, parseAddress, readFields, readRaw, withoutFields } from '#mail'
import { controlPrefix, postalTagField, readControlFields, refuseSendGridControl, sendgridField } from './control-fields.ts'
import { futureReleaseKeyword, futureReleaseParameters, readFutureRelease } from './future-release.ts'
import { openLoginGuard } from './login-throttle.ts'
import type { Backend, Visit } from './smtp-listener.ts'
import { ReplyError } from './smtp-replies.ts'

export interface SubmissionDeps {
  accept: Accept
  credentials: Credentials
  hostname: string
  clock: Clock
  log: Log
  traces: Traces | undefined
}

/** The login, verified again for each message, so that a held or revoked one stops working at once. */
export interface Login {
  userName: string
  key: string
}

/** With an imported login the From field decides the sender, for any MAIL FROM: Postal's clients rely on it. */
interface SmtpCaller extends Caller {
  imported: boolean
}

/** RFC 5321 section 6.3 asks for a limit of at least 100. */
export const maxReceivedFields = 50
const wrongLogin = () => new ReplyError(535, '5.7.8', 'Authentication credentials invalid')

export function openSubmission(deps: SubmissionDeps): Backend<Login | undefined> {
  const { accept, credentials, clock, log, traces } = deps
  const guard = openLoginGuard(clock)

  return {
    extension: { keyword: () => futureReleaseKeyword(clock.nowMs()), parameters: futureReleaseParameters },

    async authenticate(userName, key, address) {
      try {
        await callerOf(credentials, { userName, key }, address)
        return { userName, key }
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        log.info({ address, why: error.code }, 'SMTP login failed')
        await pause(clock, guard.recordFailure(networkOf(address)))
        if (error.code === 'credential_on_hold' || error.code === 'permission_denied') throw new ReplyError(535, '5.7.8', error.message)
        throw wrongLogin()
      }
    },

    async sender(visit) {
      const caller = await callerNow(credentials, visit)
      readFutureRelease(visit.parameters, clock.nowMs())
      if (visit.from !== '' && !caller.imported) await accept.refuseRawSender(visit.from, caller)
    },

    async recipient(address) {
      if (!parseAddress(address)) throw new ReplyError(553, '5.1.3', 'Invalid recipient address')
    },

    async message(octets, visit) {
      const beganMs = clock.monotonicMs()
      const caller = await callerNow(credentials, visit)
      const { from, fields } = factsOf(octets, visit, caller)
      // Postal ignores the field, so that clients of its logins go on to send.
      if (!caller.imported) refuseSendGridControl(fields)
      const { tag, metadata, idempotencyKey } = readControlFields(fields, caller.imported ? postalTagField : undefined)
      const trace = Buffer.from(traceField(visit, deps))
      const submission = {
        from,
        to: visit.recipients,
        rawMessage: Buffer.concat([trace, withoutFields(withoutFields(octets, controlPrefix), sendgridField)]).toString('base64'),
        traceOctets: trace.length,
        bounce: visit.from === '',
        tag,
        metadata,
        scheduledAt: readFutureRelease(visit.parameters, clock.nowMs()),
      }
      const renderer = {
        render: ({ id }: AcceptedSubmission) => Buffer.from(`Ok: queued as ${id}`),
        idempotency: idempotencyKey === undefined ? undefined : { key: idempotencyKey, fingerprint: fingerprintOf(octets, visit) },
      }
      const answer = await accept.sendRaw(undefined, submission, caller, renderer)
      log.info({ conversation: visit.id, credentialId: caller.credentialId, octets: octets.length, replayed: answer.replayed }, 'submitted')
      traces?.note(spanOf(visit, caller, answer.emailIds, clock.monotonicMs() - beganMs))
      return answer.body.toString()
    },
  }
}

/** Before the password is verified, all refusals look the same. */
async function callerOf(credentials: Credentials, { userName, key }: Login, address: string): Promise<SmtpCaller> {
  const { id, tenantId, mode, imported, bounds } = await credentials.authenticateLogin(userName, key, address)
  return { credentialId: id, tenantId, mode, imported, allowedFrom: bounds?.from }
}

/** Verifies the visit's login again. */
async function callerNow(credentials: Credentials, { login, address }: Visit<Login | undefined>): Promise<SmtpCaller> {
  if (!login) throw new ReplyError(530, '5.7.0', 'Authentication required')
  try {
    return await callerOf(credentials, login, address)
  } catch (error) {
    if (error instanceof Refusal) throw new ReplyError(530, '5.7.0', 'Login no longer valid', 'and close')
    throw error
  }
}

const spanOf = (visit: Visit<unknown>, caller: Caller, acceptedEmailIds: readonly string[], durationMs: number): EndedSpan => ({
  name: 'SMTP submission',
  kind: 'server',
  durationMs,
  acceptedEmailIds,
  attributes: {
    'postrider.conversation.id': visit.id,
    'postrider.credential.id': caller.credentialId,
    'postrider.tenant.id': caller.tenantId,
  },
})

/** With the null reverse-path or an imported login, the message's own From is the sender. */
function factsOf(octets: Buffer, visit: Visit<unknown>, { imported }: SmtpCaller) {
  const fields = readFields(octets)
  const facts = readRaw(octets)
  if (!fields || typeof facts === 'string') throw new ReplyError(550, '5.6.0', `Message cannot be sent: ${problemOf(facts)}`)
  if (fields.filter((field) => field.name.toLowerCase() === 'received').length > maxReceivedFields)
    throw new ReplyError(554, '5.4.6', 'Mail loop detected')
  if ('unreadable' in facts.originators)
    throw new ReplyError(550, '5.6.0', `Message cannot be sent: its ${facts.originators.unreadable} header is ambiguous`)
  return { fields, from: visit.from === '' || imported ? facts.from.address.text : visit.from }
}

const problems: Record<string, string> = {
  'no-header-block': 'it has no header block',
  'no-from': 'it has no From header',
  'several-from': 'it has more than one From header',
  'bad-from': 'its From header is ambiguous or not exactly one address; quote names that contain , : ; or @',
}
const problemOf = (facts: unknown) => problems[String(facts)] ?? 'its header has a malformed line'

/** RFC 5321 section 4.4, without fields that reveal the client's location. */
const traceField = ({ id }: Visit<unknown>, { hostname, clock }: SubmissionDeps) =>
  `Received: by ${hostname} (Postrider) with ESMTPSA id ${id};\r\n\t${dateText(clock.nowMs())}\r\n`

function fingerprintOf(octets: Buffer, { from, recipients, parameters }: Visit<unknown>): Buffer {
  const isScheduled = Object.keys(parameters).length > 0
  return createHash('sha256')
    .update(JSON.stringify(['SMTP', from, recipients, ...(isScheduled ? [parameters] : [])]))
    .update('\0')
    .update(octets)
    .digest()
}
