/** Settings of an installation: its data directory, database, host name, processes, secret and first start. */
import { availableParallelism, hostname } from 'node:os'
import { resolve } from 'node:path'
import { machineMemory } from './machine-memory.ts'
import { choiceFrom, countFrom, itemsFrom, setting } from './setting.ts'

const roleNames = ['api', 'delivery', 'inbound', 'webhooks', 'housekeeping'] as const

/** The roles that may have processes of their own. */
export const hostedRoleNames = ['delivery', 'inbound', 'webhooks'] as const
export type HostedRole = (typeof hostedRoleNames)[number]

const gibioctet = 2 ** 30

/** A process costs 60 MiB or more; one that shares its core with all others gains no time for them. */
function rolesApart(): HostedRole[] {
  const cores = availableParallelism()
  const memory = machineMemory()
  if (cores > 2 && memory > 2 * gibioctet) return [...hostedRoleNames]
  return cores >= 2 && memory >= gibioctet ? ['delivery'] : []
}

function host(value: string | undefined, fallback: string): string {
  const name = (value ?? fallback).toLowerCase()
  if (!/^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(name) || name.length > 253) {
    if (value === undefined) return 'localhost'
    throw new Error(`"${value}" is not a host name`)
  }
  return name
}

const machineName = host(undefined, hostname())

export const installationSettings = {
  dataDirectory: setting('POSTRIDER_DATA', './data', 'data directory: embedded PostgreSQL, generated secrets', (v) =>
    resolve(v ?? './data'),
  ),
  databaseUrl: setting(
    'DATABASE_URL',
    'embedded',
    'URL of a PostgreSQL server (15 or later) to use instead of the embedded one; may list several hosts',
    (v) => v,
  ),
  databaseUrlFile: setting('DATABASE_URL_FILE', 'none', 'file that contains DATABASE_URL', (v) => v),
  hostname: setting(
    'POSTRIDER_HOSTNAME',
    "the machine's name",
    'public host name: EHLO name, fallback domain of Message-IDs, base of the return-path and SPF names',
    (v) => host(v, machineName),
  ),
  roles: setting('POSTRIDER_ROLES', 'all', `comma-separated roles: ${roleNames.join(', ')}`, (v) =>
    v === undefined || v === 'all' ? [...roleNames] : itemsFrom(v).map((name) => choiceFrom(name, roleNames, 'api')),
  ),
  separateProcesses: setting(
    'POSTRIDER_SEPARATE_PROCESSES',
    'by the machine',
    `comma-separated roles with processes of their own: ${hostedRoleNames.join(', ')}, or \`none\`. Default: all; delivery with two cores or at most 2 GiB of memory; none with one core or less than 1 GiB`,
    (v) => (v === undefined ? rolesApart() : v === 'none' ? [] : itemsFrom(v).map((name) => choiceFrom(name, hostedRoleNames, 'delivery'))),
  ),
  deliveryProcesses: setting(
    'POSTRIDER_DELIVERY_PROCESSES',
    'half the cores',
    'delivery processes of this instance; each has its own signing threads',
    (v) => countFrom(v, Math.ceil(availableParallelism() / 2)),
  ),
  secret: setting(
    'POSTRIDER_SECRET',
    'generated',
    'secret that encrypts stored private keys and signs return paths; generated in the data directory (0600), required when DATABASE_URL is set',
    (v) => {
      if (v !== undefined && v.length < 16) throw new Error('must have at least 16 characters')
      return v
    },
  ),
  secretFile: setting('POSTRIDER_SECRET_FILE', 'none', 'file that contains POSTRIDER_SECRET', (v) => v),
  newSecret: setting(
    'POSTRIDER_SECRET_NEW',
    'none',
    'next secret, for `postrider secret rotate`; while both are set, the database may use either',
    (v) => {
      if (v !== undefined && v.length < 16) throw new Error('must have at least 16 characters')
      return v
    },
  ),
  newSecretFile: setting('POSTRIDER_SECRET_NEW_FILE', 'none', 'file that contains POSTRIDER_SECRET_NEW', (v) => v),
  firstStart: setting(
    'POSTRIDER_FIRST_START',
    'print',
    '`quiet`: the first start creates no keys and no owner, and prints no secrets',
    (v) => choiceFrom(v, ['print', 'quiet'], 'print'),
  ),
} as const
