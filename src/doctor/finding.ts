/** What a check says: the same four answers for all, and always what to do. */
import { isIP } from 'node:net'
import type { Clock, Config } from '#base'
import type { Db } from '#db'
import type { PlatformRecord } from '#domains'
import type { Resolver } from '#net'

export interface Finding {
  name: string
  /** `unknown`: it could not be found out. */
  status: 'ok' | 'warning' | 'problem' | 'unknown'
  found: string
  /** What to do; null when there is nothing to do. */
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
  /** The platform's own records, as DNS has them now. */
  records: readonly PlatformRecord[]
  /** Public addresses of this machine's interfaces. */
  ownAddresses: readonly string[]
  /** Where https of track domains is asked for. */
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

/** The addresses that the world sees, as DNS has them for the host's name; else those that the records speak of. */
export const addressesOf = ({ records, config }: Pick<DoctorDeps, 'records' | 'config'>): string[] =>
  records
    .filter(({ type, name, value }) => (type === 'A' || type === 'AAAA') && name === config.hostname && isIP(value) !== 0)
    .map(({ value }) => value)
