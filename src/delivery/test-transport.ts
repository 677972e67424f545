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

/** Uses the first address of the host that answers; `guard`: for a guarded transport. Never rejects because of a remote failure. */
export async function testTransport(
  { host, port, tls, auth, guarded }: Transport,
  { clock, resolver, hostname, guard }: { clock: Clock; resolver: Resolver; hostname: string; guard: AddressGuard },
): Promise<TransportTest> {
  const failed = { works: false, address: null, secure: false, conversation: '' }
  const found = await findAddresses(host, resolver, guarded ? guard : everywhere)
  if (found.kind !== 'addresses')
    return { ...failed, message: found.kind === 'refused' ? found.message : `no address of ${host} was found (${found.kind})` }
  let last: TransportTest = { ...failed, message: `${host} has no address` }
  for (const address of found.addresses) {
    const connected = await connect({
      peer: { host, address, port },
      ehloName: hostname,
      tls: transportTls[tls].tls,
      auth: auth ?? undefined,
      clock,
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
