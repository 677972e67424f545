/** Tries a transport without sending mail: the connection, TLS and login of a delivery. */
import type { Clock } from '#base'
import { type AddressGuard, findAddresses, type Resolver } from '#net'
import { connect } from '#smtp'
import { transportTls } from './router.ts'
import type { Transport } from './transports/transport-records.ts'

export interface TransportTest {
  works: boolean
  address: string | null
  secure: boolean
  /** The reason of a failure; empty: it works. */
  message: string
  /** The conversation, without the password. */
  conversation: string
}

const everywhere = { allows: () => true }

export interface TransportTestDeps {
  clock: Clock
  resolver: Resolver
  hostname: string
  /** For a guarded transport. */
  guard: AddressGuard
  /** The whole test takes no longer; default: as long as the limits of each step allow. */
  withinMs?: number
}

/** A host may have any number of addresses. */
const maxAddresses = 3
const stepMs = 10_000
const limits = { connectMs: stepMs, greetingMs: stepMs, commandMs: stepMs, tlsMs: stepMs }

/** Uses the first address of the host that answers. Never rejects because of a remote failure. */
export async function testTransport(transport: Transport, deps: TransportTestDeps): Promise<TransportTest> {
  const { clock, withinMs } = deps
  const trying = tryAddresses(transport, deps)
  if (withinMs === undefined) return trying
  const { promise: late, resolve } = Promise.withResolvers<TransportTest>()
  const cancel = clock.after(withinMs, () =>
    resolve({ ...failed, message: `the test of ${transport.host} did not end within ${withinMs / 1000} seconds` }),
  )
  return Promise.race([trying, late]).finally(cancel)
}

const failed: TransportTest = { works: false, address: null, secure: false, message: '', conversation: '' }

async function tryAddresses(
  { host, port, tls, auth, guarded }: Transport,
  { clock, resolver, hostname, guard }: TransportTestDeps,
): Promise<TransportTest> {
  const found = await findAddresses(host, resolver, guarded ? guard : everywhere)
  if (found.kind !== 'addresses')
    return { ...failed, message: found.kind === 'refused' ? found.message : `no address of ${host} was found (${found.kind})` }
  let last: TransportTest = { ...failed, message: `${host} has no address` }
  for (const address of found.addresses.slice(0, maxAddresses)) {
    const connected = await connect({
      peer: { host, address, port },
      ehloName: hostname,
      tls: transportTls[tls].tls,
      auth: auth ?? undefined,
      clock,
      limits,
    })
    if (connected.ok) {
      const { secure } = connected.connection
      connected.connection.quit()
      return { works: true, address, secure, message: '', conversation: '' }
    }
    const { message, reply, transcript } = connected.failure
    last = { ...failed, address, message: reply ? `${message}: ${reply.text}` : message, conversation: transcript }
  }
  return last
}
