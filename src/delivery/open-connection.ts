/**
 * Opens a connection to a site: tries the hosts in order of preference, uses the first address that answers, from a source that has a
 * connection lease, with the TLS that the host's policy requires. Promises: never rejects because of a remote failure.
 */
import type { Socket } from 'node:net'
import { assertNever, type Clock } from '#base'
import { type AddressesResult, type AddressGuard, type CostlyHandshakes, findAddresses, type Resolver } from '#net'
import {
  type ConnectOptions,
  type ConnectResult,
  connect,
  type Dial,
  type Failure,
  happyEyeballs,
  type Peer,
  type Reply,
  type SmtpConnection,
  type SmtpLimits,
} from '#smtp'
import { type AttemptResult, noRemote, type RemoteMta, remoteOf, resultOfFailure } from './attempt-outcome.ts'
import { type EgressPath, type EgressPaths, isWithoutLease, pathBackoffMs, targetsOf } from './egress-path.ts'
import type { PipeliningFallback } from './pipelining-fallback.ts'
import type { ConnectionLease } from './shaping/connection-leases.ts'
import { isBlockedAtGreeting } from './shaping/reputation-block.ts'
import type { CountedSession } from './tls/published-policy.ts'
import type { GuardedHost } from './tls/tls-policy.ts'
import type { TlsSessions } from './tls/tls-sessions.ts'

/** How a site is reached: MX hosts, or the operator's relay. */
export interface NextHop {
  hosts: readonly GuardedHost[]
  port: number
  auth: ConnectOptions['auth']
  /** Host name that identifies a loop; undefined: any host that greets with Postrider's own name. */
  ownName?: string | undefined
  guard: AddressGuard
  /** The host is not the recipient's: an address that the guard refuses is a fault of the settings, and the mail waits or goes elsewhere. */
  isRelay?: boolean
}

export interface ConnectFailure {
  ok: false
  attemptResult: AttemptResult
  remote: RemoteMta
  conversation: string
  /** The source and provider of the failed connection; undefined: it did not get that far. */
  path: EgressPath | undefined
  /** Whether a peer refused Postrider's address for its reputation, and whether that was known before. */
  reputationBlock: 'none' | 'new' | 'known'
}

export interface OpenedConnection {
  ok: true
  connection: SmtpConnection
  path: EgressPath
  remote: RemoteMta
}

export interface OpeningDeps {
  clock: Clock
  resolver: Resolver
  paths: EgressPaths
  pipeliningFallback: PipeliningFallback
  smtpLimits?: Partial<SmtpLimits> | undefined
  dial?: Dial | undefined
  costlyHandshakes?: CostlyHandshakes | undefined
  /** Undefined: sessions are not counted for TLS reports. */
  tlsSessions?: Pick<TlsSessions, 'note' | 'noteUnusable'> | undefined
}

/**
 * A host that answers 5xx to the connection is skipped in favour of the next. Returns `no lease` if the only addresses are of a family
 * without a connection lease. If every host refuses, the sources refused for their reputation back off.
 */
export async function openConnection(
  nextHop: NextHop,
  leases: ReadonlyMap<EgressPath, ConnectionLease>,
  deps: OpeningDeps,
): Promise<OpenedConnection | ConnectFailure | 'no lease'> {
  const { paths } = deps
  let last: ConnectFailure | undefined
  let wasWithoutLease = false
  const blocked = new Map<EgressPath, Reply>()
  hosts: for (const guarded of nextHop.hosts) {
    const { host, tls } = guarded
    if (typeof tls === 'object' && 'unusable' in tls) {
      deps.tlsSessions?.noteUnusable(guarded)
      last = leastSevere(last, connectFailure(untrusted(tls.unusable), { ...noRemote, host }))
      continue
    }
    const found = await findAddresses(host, deps.resolver, nextHop.guard)
    if (found.kind !== 'addresses') {
      last = leastSevere(last, connectFailure(unreachable(host, found, nextHop.isRelay), { ...noRemote, host }))
      continue
    }
    const peers = found.addresses.map((address) => ({ host, address, port: nextHop.port }))
    const targets = targetsOf(paths, leases, peers)
    if (targets.length === 0 && isWithoutLease(paths, peers)) wasWithoutLease = true
    else if (targets.length === 0) last = leastSevere(last, connectFailure(ofOtherFamily(host), { ...noRemote, host }))
    for await (const reached of happyEyeballs(targets, { clock: deps.clock, connectMs: deps.smtpLimits?.connectMs, dial: deps.dial })) {
      const { peer, path } = reached.target
      const result = 'failure' in reached ? { ok: false as const, failure: reached.failure } : await greet(reached, tls, nextHop, deps)
      deps.tlsSessions?.note(guarded, sessionOf(result), { receivingIp: peer.address, sendingIp: path.source ?? '' })
      if (result.ok)
        return {
          ok: true,
          connection: result.connection,
          path,
          remote: { ...remoteOf(peer, result.connection, guarded), source: path.source },
        }
      const { failure } = result
      const attemptResult = resultOfFailure(failure)
      const { reply } = attemptResult
      if (reply && isBlockedAtGreeting(reply) && !path.limiter.isThrottle(reply)) blocked.set(path, reply)
      const remote = { ...remoteOf(peer, { secure: false, tls: failure.tls ?? null }, guarded), source: path.source }
      last = leastSevere(last, connectFailure(attemptResult, remote, failure.transcript, path))
      // RFC 5321 section 5.1: hosts after this server in the list would send the message in a circle.
      if (failure.kind === 'loop') break hosts
    }
  }
  const reputationBlock = blocked.size === 0 ? 'none' : [...blocked.keys()].some((path) => pathBackoffMs(path) === 0) ? 'new' : 'known'
  for (const [path, { text }] of blocked) path.limiter.blocked(text)
  // A host that was not contacted has not refused.
  if (wasWithoutLease && last?.attemptResult.kind !== 'temporary') return 'no lease'
  return { ...(last ?? connectFailure(unreachable('the domain', { kind: 'none' }), noRemote)), reputationBlock }
}

/** `weakened`: the failure of a first handshake, after which the connection uses older TLS or no TLS. */
type Greeted = ConnectResult & { weakened?: Failure | undefined }

/** Reads the greeting over the connected socket, and starts TLS as the host's policy requires. */
async function greet(
  { target: { peer, path }, socket }: { target: { peer: Peer; path: EgressPath }; socket: Socket },
  tls: ConnectOptions['tls'],
  { ownName, auth }: NextHop,
  { clock, pipeliningFallback, costlyHandshakes, smtpLimits: limits = {}, dial }: OpeningDeps,
): Promise<Greeted> {
  const options: ConnectOptions = {
    peer,
    ehloName: path.ehloName,
    ownName,
    localAddress: path.source,
    socket,
    tls,
    auth,
    pipelining: pipeliningFallback.applies(peer.address) ? 'never' : 'when offered',
    costlyHandshakes,
    clock,
    limits,
    dial,
  }
  const result = await connect(options)
  return tls === 'opportunistic' ? await withWeakerTls(options, result) : result
}

/**
 * Opportunistic TLS: a failed handshake must not cost the mail (RFC 7435). An older TLS version is tried over a new connection, then no
 * TLS.
 */
async function withWeakerTls(options: ConnectOptions, first: ConnectResult): Promise<Greeted> {
  let result = first
  for (const tls of ['old', 'none'] as const) {
    if (result.ok || result.failure.kind !== 'tls') break
    if (tls === 'none' || result.failure.mayBeOldTls) result = await connect({ ...options, socket: undefined, tls })
  }
  return result.ok && !first.ok ? { ...result, weakened: first.failure } : result
}

const sessionOf = (result: Greeted): CountedSession =>
  result.ok ? { isOpen: true, tls: result.connection.tls, weakened: result.weakened } : { isOpen: false, failure: result.failure }

const untrusted = (message: string): AttemptResult => ({
  kind: 'temporary',
  reply: null,
  classification: 'tls_required',
  enhanced: '4.7.5',
  message,
})

const connectFailure = (
  attemptResult: AttemptResult,
  remote: RemoteMta,
  conversation = attemptResult.message,
  path?: EgressPath,
): ConnectFailure => ({
  ok: false,
  attemptResult,
  remote,
  conversation,
  path,
  reputationBlock: 'none',
})

const ofOtherFamily = (host: string): AttemptResult => ({
  kind: 'temporary',
  reply: null,
  classification: 'connection_error',
  enhanced: '4.4.4',
  message: `${host} has no address of the IP family of the egress source`,
})

/** The failure is permanent only if every host's is (RFC 5321 section 5.1); of several temporary failures the last is reported. */
const leastSevere = (before: ConnectFailure | undefined, now: ConnectFailure): ConnectFailure =>
  before && before.attemptResult.kind !== 'permanent' && now.attemptResult.kind === 'permanent' ? before : now

/** A host without a usable address. A host with addresses in refused networks only is a permanent failure (contract section 7.2). */
function unreachable(host: string, found: Exclude<AddressesResult, { kind: 'addresses' }>, isRelay = false): AttemptResult {
  const facts = { reply: null, classification: 'dns_error' as const }
  switch (found.kind) {
    case 'refused':
      return { ...facts, kind: isRelay ? 'temporary' : 'permanent', enhanced: isRelay ? '4.4.4' : '5.4.4', message: found.message }
    case 'none':
      return { ...facts, kind: 'temporary', enhanced: '4.4.4', message: `${host} has no address` }
    case 'trouble':
      return { ...facts, kind: 'temporary', enhanced: '4.4.3', message: `address lookup of ${host} failed (${found.code})` }
    default:
      return assertNever(found)
  }
}
