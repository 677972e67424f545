/** Network checks: outgoing SMTP connections, and valid certificates on the installation's own names. */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { listCertificates } from '#certificates'
import { openGuard } from '#net'
import { connect } from '#smtp'
import { listTrackDomains } from '#tracking'
import { type Check, type CheckResult, checkResult, type DoctorDeps, ok } from './check-result.ts'

/** One answer is enough, because any single provider may be down. */
const probed = ['gmail.com', 'outlook.com', 'yahoo.com']
const connectMs = 6000
const greetingMs = 8000
const tlsMs = 8000
const dayMs = 86_400_000
const renewDays = 14
const maxTrackDomains = 20

export const checkPort25: Check = async (deps) => {
  const { config } = deps
  const name = config.relay ? 'relay' : `port ${config.mxPort} out`
  const tried = config.relay
    ? [await greet(deps, config.relay.host, config.relay.port, config.relay.implicitTls ? 'implicit' : 'opportunistic')]
    : await Promise.all(probed.map((domain) => greetMx(deps, domain)))
  const [good] = tried.filter((one) => one.state === 'greeted')
  if (good) return [ok(name, good.text)]
  const text = tried.map((one) => one.text).join('; ')
  if (tried.every((one) => one.state === 'unknown')) return [checkResult(name, 'unknown', text, 'See the check "resolver"')]
  if (config.relay) return [checkResult(name, 'problem', text, 'Check POSTRIDER_RELAY, and that the relay accepts this machine')]
  if (tried.some((one) => one.state === 'refused'))
    return [checkResult(name, 'problem', text, 'The servers are reachable but refuse this address: see the checks of PTR and blocklists')]
  return [
    checkResult(
      name,
      'problem',
      `no mail server responds: ${text}`,
      'Ask your hoster to open outbound port 25, or send through another server (POSTRIDER_RELAY)',
    ),
  ]
}

interface Greeted {
  state: 'greeted' | 'refused' | 'silent' | 'unknown'
  text: string
}

async function greetMx(deps: DoctorDeps, domain: string): Promise<Greeted> {
  const mx = await deps.resolver.mx(domain)
  const exchange = mx.kind === 'found' ? mx.value[0]?.exchange : undefined
  if (exchange === undefined) return { state: 'unknown', text: `${domain}: mail server not found` }
  return greet(deps, exchange, deps.config.mxPort, 'opportunistic')
}

/** Connects, sends EHLO and disconnects. */
async function greet(deps: DoctorDeps, host: string, port: number, tls: 'opportunistic' | 'implicit'): Promise<Greeted> {
  const { resolver, config, clock } = deps
  const found = await resolver.addresses(host)
  const guard = openGuard(config.allowedNetworks)
  // The operator's relay may have any address.
  const usable = found.kind === 'found' ? found.value.filter((one) => config.relay !== undefined || guard.allows(one)) : []
  // IPv4 first, because few machines have working IPv6 and the check only asks whether mail can leave.
  const address = usable.find((one) => one.includes('.')) ?? usable[0]
  if (address === undefined) return { state: 'unknown', text: `${host}: no address` }
  const limits = { connectMs, greetingMs, commandMs: greetingMs, tlsMs }
  const result = await connect({ peer: { address, port, host }, ehloName: config.hostname, tls, clock, limits })
  if (result.ok) {
    result.connection.quit()
    return { state: 'greeted', text: `${host} accepts EHLO${result.connection.secure ? ' over TLS' : ''}` }
  }
  const { failure } = result
  if (failure.stage === 'connect' || failure.kind === 'timeout') return { state: 'silent', text: `${host}: ${failure.message}` }
  return { state: 'refused', text: `${host}: ${failure.reply?.text ?? failure.message}` }
}

function judgeCertificate(name: string, certificate: X509Certificate, host: string, nowMs: number, renew: string): CheckResult | undefined {
  const endsMs = Date.parse(certificate.validTo)
  const ends = new Date(endsMs).toISOString().slice(0, 10)
  if (endsMs <= nowMs) return checkResult(name, 'problem', `expired on ${ends}`, renew)
  if (endsMs - nowMs < renewDays * dayMs) return checkResult(name, 'warning', `expires on ${ends}`, renew)
  if (certificate.checkHost(host) === undefined)
    return checkResult(name, 'warning', `issued for ${certificate.subjectAltName ?? certificate.subject}, not for ${host}`, renew)
  return undefined
}

export const checkSmtpCertificate: Check = async ({ db, config, clock }) => {
  const name = 'certificate of SMTP'
  const isOwn = config.tlsCert === undefined
  const obtained = isOwn && config.https ? (await listCertificates(db)).find((one) => one.name === config.hostname)?.expiresAt : undefined
  // The check of certificates by ACME has its problems.
  if (obtained) return [ok(name, `valid for ${config.hostname} until ${obtained.toISOString()}, by ACME`)]
  const path = config.tlsCert ?? join(config.dataDirectory, 'smtp-certificate.pem')
  const give =
    'Set POSTRIDER_HTTPS=on, or set POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY to a publicly trusted certificate for POSTRIDER_HOSTNAME'
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(await readFile(path))
  } catch (error) {
    if (isOwn) return [checkResult(name, 'unknown', 'no certificate yet: the SMTP listeners have not run here', give)]
    return [checkResult(name, 'problem', `${path}: ${(error as Error).message}`, give)]
  }
  const bad = judgeCertificate(
    name,
    certificate,
    config.hostname,
    clock.nowMs(),
    isOwn ? 'Restart the service: it creates a new certificate' : give,
  )
  if (bad) return [bad]
  if (isOwn) return [checkResult(name, 'warning', 'self-signed: mail servers accept it, mail clients do not', give)]
  return [ok(name, `valid for ${config.hostname} until ${certificate.validTo}`)]
}

export const checkTrackCertificates: Check = async (deps) => {
  const secure = (await listTrackDomains(deps.db, null)).filter(({ sslEnabled, dnsStatus }) => sslEnabled && dnsStatus === 'ok')
  return Promise.all(secure.slice(0, maxTrackDomains).map(({ fullName }) => checkHttps(deps, fullName)))
}

async function checkHttps({ resolver, clock, config, httpsPort }: DoctorDeps, host: string): Promise<CheckResult> {
  const name = `certificate of ${host}`
  const renew = config.https
    ? `Run postrider certificate list, and see docs/https.md`
    : 'Set POSTRIDER_HTTPS=on (docs/https.md), or let the reverse proxy obtain a certificate for each track domain (docs/tracking-https.md)'
  const found = await resolver.addresses(host, 'fresh')
  const address = found.kind === 'found' ? found.value[0] : undefined
  if (address === undefined) return checkResult(name, 'unknown', 'address not found', 'Check the DNS record of the track domain')
  const seen = await new Promise<{ certificate: X509Certificate | undefined; complaint: string | undefined }>((resolve) => {
    // An invalid certificate is accepted, because reporting it is the purpose; no data is sent.
    const socket: TLSSocket = connectTls({ host: address, port: httpsPort, servername: host, rejectUnauthorized: false })
    const end = (complaint: string | undefined) => {
      cancel()
      resolve({ certificate: socket.getPeerX509Certificate(), complaint })
      socket.destroy()
    }
    const cancel = clock.after(tlsMs, () => end('no response'))
    socket.once('error', (error) => end(error.message))
    socket.once('secureConnect', () => end(socket.authorized ? undefined : String(socket.authorizationError)))
  })
  if (seen.certificate) {
    const bad = judgeCertificate(name, seen.certificate, host, clock.nowMs(), renew)
    if (bad) return bad
  }
  return seen.complaint === undefined
    ? ok(name, `valid until ${seen.certificate?.validTo}`)
    : checkResult(name, 'problem', seen.complaint, renew)
}
