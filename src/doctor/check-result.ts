/** The check result: one of four statuses, and the recommended action. */
import { isIP } from 'node:net'
import type { Clock, Config } from '#base'
import type { Db } from '#db'
import type { PlatformRecord } from '#domains'
import type { Resolver } from '#net'

export interface CheckResult {
  check: string
  /** `unknown`: the check could not be completed. */
  status: 'ok' | 'warning' | 'problem' | 'unknown'
  detail: string
  /** The recommended action; null if no action is needed. */
  remedy: string | null
}

export interface DoctorDeps {
  db: Db
  clock: Clock
  config: Pick<
    Config,
    | 'hostname'
    | 'dnsUpdate'
    | 'dataDirectory'
    | 'databaseUrl'
    | 'keepEmailDays'
    | 'keepLogDays'
    | 'keepWebhookDays'
    | 'tlsCert'
    | 'https'
    | 'mtaSts'
    | 'relay'
    | 'mxPort'
    | 'allowedNetworks'
    | 'sandboxSender'
    | 'roles'
    | 'smtpHost'
    | 'smtpPort'
    | 'submissionPort'
    | 'submissionTlsPort'
  >
  resolver: Resolver
  /** The platform's own records, with their current state in DNS. */
  records: readonly PlatformRecord[]
  /** Public addresses of this machine's interfaces. */
  ownAddresses: readonly string[]
  /** The HTTPS port of track domains. */
  httpsPort: number
}

export type Check = (deps: DoctorDeps) => Promise<CheckResult[]>

export const ok = (check: string, detail: string): CheckResult => ({ check, status: 'ok', detail, remedy: null })
export const checkResult = (check: string, status: CheckResult['status'], detail: string, remedy: string): CheckResult => ({
  check,
  status,
  detail,
  remedy,
})

/** The public addresses: of the host name in DNS, otherwise those in the records. */
export const addressesOf = ({ records, config }: Pick<DoctorDeps, 'records' | 'config'>): string[] =>
  records
    .filter(({ type, name, value }) => (type === 'A' || type === 'AAAA') && name === config.hostname && isIP(value) !== 0)
    .map(({ value }) => value)
