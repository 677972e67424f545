/**
 * Opens a connection to a site: tries the hosts in order of preference, uses the first address that answers, from a source that has a
 * connection lease, with the TLS that the host's policy requires. Promises: never rejects because of a remote failure.
 */
import { type Clock, impossible } from '#base'
import { type AddressesResult, type AddressGuard, findAddresses, type Resolver } from '#net'
import {
  type ConnectOptions,
  type ConnectResult,
  connect,
  type Dial,
  type Failure,
  type Reply,
  reach,
  type SmtpConnection,
  type SmtpLimits,
} from '#smtp'
import { type Finding, findingOfFailure, nowhere, type RemoteEnd, remoteOf } from './outcome.ts'
import { type End, endRestMs, isLeftOut, type Outlet, targetsOf } from './outlet.ts'
import { isDistrustAtDoor } from './shaping/distrust.ts'
import type { Slot } from './shaping/slots.ts'
import type { Stumbles } from './stumbles.ts'
import type { GuardedHost } from './tls/policy.ts'

/** How a site is reached: MX hosts, or the operator's relay. */
export interface Way {
  hosts: readonly GuardedHost[]
  port: number
  auth: ConnectOptions['auth']
  /** Host name that identifies a loop; undefined: any host that greets with Postrider's own name. */
  ownName?: string | undefined
  guard: AddressGuard
}

export interface Unopened {
  ok: false
  finding: Finding
  remote: RemoteEnd
  conversation: string
  /** The source and provider of the failed connection; undefined: it did not get that far. */
  end: End | undefined
  /** Whether a peer refused Postrider's address for its reputation, and whether that was known before. */
  distrust: 'none' | 'new' | 'known'
}

type Opened = { ok: true; connection: SmtpConnection; end: End; remote: RemoteEnd } | Unopened

export interface OpeningDeps {
  clock: Clock
  resolver: Resolver
  outlet: Outlet
  stumbles: Stumbles
  smtpLimits?: Partial<SmtpLimits> | undefined
  dial?: Dial | undefined
}

/**
 * A host that answers 5xx to the connection is skipped in favour of the next. Returns `left out` if the only addresses are of a family
 * without a connection lease. If every host refuses, the sources refused for their reputation back off.
 */
export async function openConnection(way: Way, slots: ReadonlyMap<End, Slot>, deps: OpeningDeps): Promise<Opened | 'left out'> {
  const { outlet, clock, stumbles, dial, smtpLimits: limits = {} } = deps
  let last: Unopened | undefined
  let wasLeftOut = false
  const distrusted = new Map<End, Reply>()
  hosts: for (const guarded of way.hosts) {
    const { host, tls } = guarded
    if (typeof tls === 'object' && 'unusable' in tls) {
      last = gentler(last, unopened(untrusted(tls.unusable), { ...nowhere, host }))
      continue
    }
    const found = await findAddresses(host, deps.resolver, way.guard)
    if (found.kind !== 'addresses') {
      last = gentler(last, unopened(unreachable(host, found), { ...nowhere, host }))
      continue
    }
    const peers = found.addresses.map((address) => ({ host, address, port: way.port }))
    const targets = targetsOf(outlet, slots, peers)
    if (targets.length === 0 && isLeftOut(outlet, peers)) wasLeftOut = true
    else if (targets.length === 0) last = gentler(last, unopened(ofOtherFamily(host), { ...nowhere, host }))
    for await (const reached of reach(targets, { clock, connectMs: limits.connectMs, dial })) {
      const { peer, end } = reached.target
      const told = (failure: Failure) => {
        const remote = remoteOf(peer, { secure: false, tls: failure.tls ?? null }, guarded)
        const finding = findingOfFailure(failure)
        const { reply } = finding
        if (reply && isDistrustAtDoor(reply) && !end.shape.isThrottle(reply)) distrusted.set(end, reply)
        return unopened(finding, { ...remote, source: end.source }, failure.transcript, end)
      }
      if ('failure' in reached) {
        last = gentler(last, told(reached.failure))
        continue
      }
      const options: ConnectOptions = {
        peer,
        ehloName: end.ehloName,
        ownName: way.ownName,
        localAddress: end.source,
        socket: reached.socket,
        tls,
        auth: way.auth,
        pipelining: stumbles.has(peer.address) ? 'never' : 'when offered',
        clock,
        limits,
        dial,
      }
      let result = await connect(options)
      if (tls === 'opportunistic') result = await orWithLess(options, result)
      if (result.ok) return { ...result, end, remote: { ...remoteOf(peer, result.connection, guarded), source: end.source } }
      last = gentler(last, told(result.failure))
      // RFC 5321 section 5.1: hosts after this server in the list would send the message in a circle.
      if (result.failure.kind === 'loop') break hosts
    }
  }
  const distrust = distrusted.size === 0 ? 'none' : [...distrusted.keys()].some((end) => endRestMs(end) === 0) ? 'new' : 'known'
  for (const [end, { text }] of distrusted) end.shape.distrusted(text)
  // A host that was not contacted has not refused.
  if (wasLeftOut && last?.finding.kind !== 'temporary') return 'left out'
  return { ...(last ?? unopened(unreachable('the domain', { kind: 'none' }), nowhere)), distrust }
}

/**
 * Opportunistic TLS: a failed handshake must not cost the mail (RFC 7435). An older TLS version is tried over a new connection, then no
 * TLS.
 */
async function orWithLess(options: ConnectOptions, first: ConnectResult): Promise<ConnectResult> {
  let result = first
  for (const tls of ['old', 'none'] as const) {
    if (result.ok || result.failure.kind !== 'tls') return result
    if (tls === 'none' || result.failure.mayBeOldTls) result = await connect({ ...options, socket: undefined, tls })
  }
  return result
}

const untrusted = (message: string): Finding => ({
  kind: 'temporary',
  reply: null,
  classification: 'tls_required',
  enhanced: '4.7.5',
  message,
})

const unopened = (finding: Finding, remote: RemoteEnd, conversation = finding.message, end?: End): Unopened => ({
  ok: false,
  finding,
  remote,
  conversation,
  end,
  distrust: 'none',
})

const ofOtherFamily = (host: string): Finding => ({
  kind: 'temporary',
  reply: null,
  classification: 'connection_error',
  enhanced: '4.4.4',
  message: `${host} has no address of the family that this mail is sent from`,
})

/** The failure is permanent only if every host's is (RFC 5321 section 5.1); of several temporary failures the last is reported. */
const gentler = (before: Unopened | undefined, now: Unopened): Unopened =>
  before && before.finding.kind !== 'permanent' && now.finding.kind === 'permanent' ? before : now

/** A host without a usable address. A host with addresses in refused networks only is a permanent failure (contract section 7.2). */
function unreachable(host: string, found: Exclude<AddressesResult, { kind: 'addresses' }>): Finding {
  const facts = { reply: null, classification: 'dns_error' as const }
  switch (found.kind) {
    case 'refused':
      return { ...facts, kind: 'permanent', enhanced: '5.4.4', message: found.message }
    case 'none':
      return { ...facts, kind: 'temporary', enhanced: '4.4.4', message: `${host} has no address` }
    case 'trouble':
      return { ...facts, kind: 'temporary', enhanced: '4.4.3', message: `the address of ${host} could not be looked up (${found.code})` }
    default:
      return impossible(found)
  }
}
