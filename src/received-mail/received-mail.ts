/**
 * Mail in: routes of sending domains, and the messages that they receive, each stored with an event for webhooks.
 * Owns: mail_routes, received_messages, received_erasures. Uses: base, mail, dkim, net, db, tenants, domains, events, emails,
 * returns. Used by: webhooks, privacy, housekeeping, http, cli, main.
 * Promises: mail is accepted only for an address that a route of a verified domain names; when `take` resolves, the message and its event
 * are on disk; a message that its sender repeats is stored once; a hostile message costs a bounded time and memory, on a thread of its own.
 */
import { type Clock, type Ids, type Log, Refusal, wrongField } from '#base'
import type { Db } from '#db'
import type { DnsRecord, Domains } from '#domains'
import { openReplyNames, replyNameLength } from '#emails'
import { parseAddress } from '#mail'
import { openReaderOf } from '#returns'
import { tenantForNew } from '#tenants'
import { routePattern, withStar } from './match-route.ts'
import type { ReceivedParts } from './read-received-mail.ts'
import {
  addRoute,
  changeRoute,
  getRoute,
  listRoutesOf,
  type MailRoute,
  type RouteChanges,
  type RoutePage,
  removeRoute,
} from './route-records.ts'

export { dkimResults, dmarcResults, shownAuthentication, spfResults } from './authenticate.ts'
export { countedBeyond, listReceived } from './list-received.ts'
export { hasRoute, listRoutesForwardingTo, type MailRoute, routeAddress } from './route-records.ts'
export {
  countReceivedLeft,
  deleteOldReceived,
  eraseReceived,
  findReceived,
  forgetForwardTarget,
  getReceived,
  getReceivedOctets,
  getReceivedRaw,
  listReceivedOf,
  type ReceivedCopies,
  type ReceivedMail,
  type ReceivedSummary,
  removeOldReceived,
  removeReceivedOfTenant,
} from './stored-messages.ts'
export { openReceiving, type ReceivingDeps } from './take-mail.ts'

/** Reads with a thread. */
export const openReceivedMailReader = (deps: { clock: Clock; log: Log }) =>
  openReaderOf<ReceivedParts>(new URL('./received-mail-thread.ts', import.meta.url), deps)

/** All refuse `not_found` and `validation_error`. */
export interface Routes {
  /** Also refuses `domain_not_verified` and `tenant_archived`. */
  create(tenantId: string, wanted: WantedRoute): Promise<MailRoute>
  list(tenantId: string, page: RoutePage): Promise<{ routes: MailRoute[]; total: number }>
  get(tenantId: string, id: string): Promise<MailRoute>
  update(tenantId: string, id: string, changes: RouteChanges): Promise<MailRoute>
  remove(tenantId: string, id: string): Promise<void>
  /** How to make the addresses of a route for replies, one for each email; only a reply to one of them arrives at the route. */
  replyAddresses(tenantId: string, id: string): Promise<(emailId: string, nowMs: number) => string>
}

export interface WantedRoute {
  address: string
  forwardTo: string | null
  enabled: boolean
  replies: boolean
}

interface RoutesDeps {
  db: Db
  clock: Clock
  ids: Ids
  domains: Pick<Domains, 'find'>
  /** Of the names in reply addresses. */
  secrets: Parameters<typeof openReplyNames>[0]
}

const idLength = 20
/** RFC 5321 section 4.5.3.1.1. */
const maxLocalLength = 64

export function openRoutes({ db, clock, ids, domains, secrets }: RoutesDeps): Routes {
  const now = () => new Date(clock.nowMs())
  const names = openReplyNames(secrets)
  return {
    async create(tenantId, { address, forwardTo, enabled, replies }) {
      const { local, domain } = routePattern(address)
      if (replies) checkReplyPattern(local)
      checkTarget(forwardTo)
      const owned = await domains.find(tenantId, domain)
      if (!owned?.verified || owned.testOnly)
        throw new Refusal('domain_not_verified', {
          field: 'address',
          message: `address: the domain ${domain} is not a verified sending domain of this tenant`,
        })
      return db.transaction(async (tx) => {
        await tenantForNew(tx, tenantId)
        const id = `route_${ids.token(idLength)}`
        const isVerified = async (other: { tenantId: string; domainId: number }) => {
          const found = await domains.find(other.tenantId, domain)
          return found?.id === other.domainId && found.verified
        }
        return addRoute(tx, { tenantId, id, domainId: owned.id, domain, local, forwardTo, enabled, replies }, { at: now(), isVerified })
      })
    },
    list: (tenantId, page) => listRoutesOf(db, tenantId, page),
    get: (tenantId, id) => getRoute(db, tenantId, id),
    async update(tenantId, id, changes) {
      checkTarget(changes.forwardTo ?? null)
      return changeRoute(db, tenantId, id, changes, now())
    },
    remove: (tenantId, id) => removeRoute(db, tenantId, id),
    async replyAddresses(tenantId, id) {
      const { replies, enabled, local, domain } = await getRoute(db, tenantId, id, 'replyRouteId')
      if (!replies || !enabled)
        throw wrongField(
          'replyRouteId',
          replies ? `is a disabled route: ${id}` : `is not a route for replies: ${id}`,
          'validation_error',
          replies ? 'Enable the route' : 'Create a route with replies: true and an address such as reply-*@mail.example.com',
        )
      return (emailId, nowMs) => `${withStar(local, names.make(emailId, tenantId, nowMs))}@${domain}`
    },
  }
}

/** The star stands for a name of 52 letters. */
function checkReplyPattern(local: string): void {
  const others = maxLocalLength - replyNameLength
  if (local.includes('*') && local.length - 1 <= others) return
  throw wrongField('address', `of a route for replies must have one * and at most ${others} other characters before the @`)
}

function checkTarget(forwardTo: string | null): void {
  if (forwardTo !== null && !parseAddress(forwardTo)) throw wrongField('forwardTo', 'must be an email address', 'invalid_email_format')
}

/** The MX record that brings mail for a domain to this installation, judged by the last check of the domain's MX records. */
export function receivingRecord(mx: DnsRecord, hostname: string): DnsRecord {
  const host = hostname.toLowerCase()
  const value = `10 ${host}`
  const leadsHere = mx.found.some((one) => one.toLowerCase().replace(/\.$/, '').endsWith(` ${host}`))
  const record = { ...mx, value, found: mx.found, problem: null, suggestion: null }
  if (mx.status === null) return { ...record, status: null, problem: mx.problem, suggestion: mx.suggestion }
  if (leadsHere) return { ...record, status: 'OK' }
  return {
    ...record,
    status: mx.found.length === 0 ? 'Missing' : 'Invalid',
    problem: mx.found.length === 0 ? `No MX record at ${mx.fullName}` : `The MX records at ${mx.fullName} do not lead to ${host}`,
    suggestion: `Publish this MX record at ${mx.fullName}: ${value}`,
  }
}
