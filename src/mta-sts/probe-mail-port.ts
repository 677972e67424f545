/**
 * Probes the mail port as a sender with MTA-STS would: every address of the MX host must offer STARTTLS with a certificate that is valid for
 * the host name. Bounded in addresses and time. A probe that cannot be made, such as behind a closed port 25, has the result `unknown`.
 */
import { type Clock, sanitiseText } from '#base'
import { completeAnswer, type Resolver } from '#net'
import { connect, type Failure } from '#smtp'
import type { PortFinding } from './next-stage.ts'

export interface ProbeDeps {
  clock: Clock
  resolver: Resolver
  /** The port of MX hosts. */
  mxPort: number
}

const maxAddresses = 16
const maxReason = 300
const limits = { connectMs: 6000, greetingMs: 8000, commandMs: 8000, tlsMs: 8000 }

const unknown = (reason: string): PortFinding => ({ kind: 'unknown', reason })
const sameName = (one: string, other: string) => one.toLowerCase().replace(/\.$/, '') === other.toLowerCase()

/** `domain`: receives mail by the MX host `hostname` alone. */
export async function probeMailPort(domain: string, hostname: string, deps: ProbeDeps): Promise<PortFinding> {
  const [mx, answer] = await Promise.all([deps.resolver.mx(domain, 'fresh'), deps.resolver.addresses(hostname, 'fresh')])
  // Of every address: one that the answer lacks may have another certificate.
  const found = completeAnswer(answer)
  if (mx.kind === 'trouble' || found.kind === 'trouble') return unknown('the DNS lookup failed')
  if (mx.kind !== 'found') return unknown(`${domain} has no MX record`)
  const other = mx.value.find(({ exchange }) => !sameName(exchange, hostname))
  if (other) return { kind: 'unfit', reason: `${domain} has another MX host: ${sanitiseText(other.exchange, 253)}` }
  if (found.kind !== 'found' || found.value.length === 0) return unknown(`${hostname} has no address`)
  if (found.value.length > maxAddresses) return unknown(`${hostname} has more than ${maxAddresses} addresses`)
  const findings = await Promise.all([...found.value].sort().map((address) => probeAddress(address, hostname, deps)))
  const ends = findings.flatMap((one) => (one.kind === 'fit' ? [one.endsMs] : []))
  return (
    findings.find(({ kind }) => kind === 'unfit') ??
    findings.find(({ kind }) => kind === 'unknown') ?? { kind: 'fit', endsMs: Math.min(...ends) }
  )
}

async function probeAddress(address: string, host: string, { clock, mxPort: port }: ProbeDeps): Promise<PortFinding> {
  let endsMs = Number.NaN
  const result = await connect({
    peer: { host, address, port },
    ehloName: host,
    tls: {
      judge([own], complaint) {
        endsMs = Date.parse(own?.validTo ?? '')
        return { isContent: complaint === undefined && !Number.isNaN(endsMs), verdict: complaint ?? 'valid' }
      },
    },
    clock,
    limits,
  })
  if (result.ok) {
    result.connection.quit()
    return { kind: 'fit', endsMs }
  }
  const { failure } = result
  return { kind: isUnfit(failure) ? 'unfit' : 'unknown', reason: `${address}: ${sanitiseText(failure.message, maxReason)}` }
}

/** A firewall, a limit or a time-out proves nothing; a port without STARTTLS, or with another certificate, does. */
const isUnfit = ({ stage, tls, isWithoutTls, mayBeOldTls }: Failure) =>
  stage === 'tls' && (tls !== undefined || isWithoutTls === true || mayBeOldTls === true)
