/** The check result: one of four statuses, and the recommended action. */
import { isIP } from 'node:net'
import type { Clock, Config } from '#base'
import type { Db } from '#db'
import type { PlatformRecord } from '#domains'
import type { Resolver } from '#net'

export interface Finding {
  name: string
  /** `unknown`: the check could not be completed. */
  status: 'ok' | 'warning' | 'problem' | 'unknown'
  found: string
  /** The recommended action; null if no action is needed. */
  do: string | null
}

export interface DoctorDeps {
  db: Db
  clock: Clock
  config: Pick<
    Config,
    | 'hostname'
    | 'dataFolder'
    | 'databaseUrl'
    | 'tlsCert'
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

export type Check = (deps: DoctorDeps) => Promise<Finding[]>

export const ok = (name: string, found: string): Finding => ({ name, status: 'ok', found, do: null })
export const finding = (name: string, status: Finding['status'], found: string, todo: string): Finding => ({
  name,
  status,
  found,
  do: todo,
})

/** The public addresses: of the host name in DNS, otherwise those in the records. */
export const addressesOf = ({ records, config }: Pick<DoctorDeps, 'records' | 'config'>): string[] =>
  records
    .filter(({ type, name, value }) => (type === 'A' || type === 'AAAA') && name === config.hostname && isIP(value) !== 0)
    .map(({ value }) => value)
