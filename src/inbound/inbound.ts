/**
 * SMTP entry point: submission by SMTP clients, and incoming mail: bounces, complaints, reports, and mail for routes.
 * Owns: no tables. Uses: base, mail, db, credentials, limits, domains, certificates, accept. Used by: main.
 * Promises: 250 is sent after the commit; other mail is refused during the session; no login without TLS; a bare CR or LF ends the session;
 * connections, octets, errors and time are bounded.
 */
import type { Accept } from '#accept'
import { type Clock, type Config, ConfigError, type Log, type Traces } from '#base'
import type { CertificateStore } from '#certificates'
import type { Credentials } from '#credentials'
import type { Db } from '#db'
import { isSendingDomain, returnPathDomainOf, returnPathLabel } from '#domains'
import { parseAddress } from '#mail'
import { type Certificate, type CertificateSettings, followCertificate, followStore, readCertificate } from './certificate.ts'
import { openIncoming, type ReturnHandler, type RouteHandler } from './incoming-mail.ts'
import { openMemoryBudget } from './memory-budget.ts'
import { type ListenerLimits, type ListenerOptions, openListener } from './smtp-listener.ts'
import { openSubmission } from './submission.ts'

export { ensureCertificate } from './certificate.ts'
export type { ReturnEnvelope, ReturnHandler } from './incoming-mail.ts'

export interface InboundDeps {
  db: Db
  clock: Clock
  log: Log
  traces?: Traces | undefined
  accept: Accept
  credentials: Credentials
  returns: ReturnHandler
  /** DMARC and TLS reports about sending domains. */
  reports?: ReturnHandler | undefined
  /** Mail for routes of tenants. */
  routes?: RouteHandler | undefined
  config: CertificateSettings & Pick<Config, 'smtpHost' | 'smtpPort' | 'submissionPort' | 'submissionTlsPort' | 'postmaster'>
  /** The certificates by ACME (POSTRIDER_HTTPS); the operator's own files have precedence. */
  store?: CertificateStore | undefined
  /** Stricter limits for tests. */
  bounds?: Partial<ListenerLimits>
}

export interface Inbound {
  ports: { smtp: number; submission: number; submissionTls: number }
  stop(): Promise<void>
}

const mebibyte = 1_048_576

const usualBounds: Omit<ListenerLimits, 'largestOctets' | 'errors' | 'greetAtOnce'> = {
  connections: 2000,
  connectionsPerNetwork: 250,
  recipients: 50,
  firstMs: 60_000,
  stepMs: 300_000,
  messageMs: 600_000,
  sessionMs: 900_000,
}
const submissionBounds: ListenerLimits = { ...usualBounds, largestOctets: 14 * mebibyte, errors: 100, greetAtOnce: true }
/** Reports may include the complete original message. */
const incomingBounds: ListenerLimits = { ...usualBounds, largestOctets: 20 * mebibyte, errors: 20, greetAtOnce: false }
/** Memory for the incoming messages of one network: an eighth of all, more than the largest message. */
const incomingOfNetwork = 32 * mebibyte

/**
 * Listens on the three ports of `config` (0: any free port). The caller has called `ensureCertificate`. Long because each port is listed
 * with its settings.
 */
export async function startInbound(deps: InboundDeps): Promise<Inbound> {
  const { db, clock, log, traces, accept, credentials, returns, reports, routes, config } = deps
  const { hostname, postmaster } = config
  refuseUnusablePostmaster(config)
  const store = config.tlsCert === undefined ? deps.store : undefined
  const certificate = (await store?.find(hostname)) ?? readCertificate(config)
  const common = { host: config.smtpHost, hostname: config.hostname, certificate, clock, log }
  // Separate budgets, so that unauthenticated mail cannot displace submissions.
  const budgets = { incoming: openMemoryBudget(undefined, incomingOfNetwork), submission: openMemoryBudget() }
  const submission = openSubmission({ accept, credentials, hostname, clock, log, traces })
  const incoming = openIncoming({
    returns,
    reports,
    routes,
    accept,
    postmaster,
    clock,
    log,
    isOurName: (domain) => isOurName(domain, hostname, db),
  })
  const open = async <Login>(options: Pick<ListenerOptions<Login>, 'port' | 'setting' | 'tls' | 'backend' | 'bounds' | 'budget'>) =>
    openListener<Login>({ ...common, ...options, bounds: { ...options.bounds, ...deps.bounds } })

  const listeners = await Promise.all([
    open({
      port: config.smtpPort,
      setting: 'POSTRIDER_SMTP_PORT',
      tls: 'starttls',
      backend: incoming,
      bounds: incomingBounds,
      budget: budgets.incoming,
    }),
    open({
      port: config.submissionPort,
      setting: 'POSTRIDER_SUBMISSION_PORT',
      tls: 'starttls',
      backend: submission,
      bounds: submissionBounds,
      budget: budgets.submission,
    }),
    open({
      port: config.submissionTlsPort,
      setting: 'POSTRIDER_SUBMISSION_TLS_PORT',
      tls: 'implicit',
      backend: submission,
      bounds: submissionBounds,
      budget: budgets.submission,
    }),
  ])
  const changed = (now: Certificate) => {
    for (const listener of listeners) listener.useCertificate(now)
  }
  const followed = store
    ? followStore(store, { hostname, clock, log, changed })
    : followCertificate(config, { clock, log, now: certificate, changed })
  const [smtp, starttls, implicit] = listeners
  const ports = { smtp: smtp.port, submission: starttls.port, submissionTls: implicit.port }
  log.info({ host: config.smtpHost, ports }, 'SMTP listeners started')
  return {
    ports,
    async stop() {
      followed.stop()
      await Promise.all(listeners.map((listener) => listener.stop()))
    },
  }
}

function refuseUnusablePostmaster({ postmaster, hostname }: InboundDeps['config']): void {
  if (postmaster === undefined) return
  const address = parseAddress(postmaster)
  if (!address) throw new ConfigError(`POSTRIDER_POSTMASTER: "${postmaster}" is not an email address`)
  if ([hostname, returnPathDomainOf(hostname)].includes(address.domain))
    throw new ConfigError("POSTRIDER_POSTMASTER must not be one of this server's own addresses: mail would loop")
}

/** The installation's host name, its return-path name, and sending domains. */
async function isOurName(domain: string, hostname: string, db: Db): Promise<boolean> {
  if (domain === hostname || domain === returnPathDomainOf(hostname)) return true
  const below = `${returnPathLabel}.`
  return domain.startsWith(below) && isSendingDomain(db, domain.slice(below.length))
}
