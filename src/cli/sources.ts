/** Commands for egress sources and pools, and their assignment to tenants and tags. */
import { isIP } from 'node:net'
import {
  addSource,
  assignPool,
  canBind,
  defaultPool,
  type EgressSource,
  listAssignments,
  listSources,
  type PoolAssignment,
  removeSource,
  unassignPool,
} from '#delivery'
import type { Installation } from '#installation'
import { openResolver, type Resolver } from '#net'
import { givenTenant } from './command-arguments.ts'
import { type Command, type CommandArguments, jsonOption, printed, text, UsageError } from './command-definition.ts'

interface Advice {
  /** The address's PTR names; null: the DNS lookup failed. */
  ptr: string[] | null
  /** This machine has the address; another delivering machine may have it as well. */
  isHere: boolean
  /** The recommended repair; null: no repair needed. */
  advice: string | null
}

/** Checks that receivers make of a connecting address: its PTR, and the name's address back to it. */
async function adviceOn(resolver: Resolver, address: string, name: string): Promise<Advice> {
  const [ptr, addresses, isHere] = await Promise.all([resolver.ptr(address, 'fresh'), resolver.addresses(name, 'fresh'), canBind(address)])
  const elsewhere = isHere ? [] : ['assign the address to this machine: it cannot send from it yet']
  const advised = (advice: string[]) => ({ isHere, advice: advice.length === 0 ? null : advice.join(', and ') })
  if (ptr.kind === 'trouble' || addresses.kind === 'trouble')
    return { ptr: null, ...advised([...elsewhere, 'check its PTR again: the DNS lookup failed (POSTRIDER_DNS)']) }
  const found = ptr.kind === 'found' ? ptr.value : []
  const isNamed = found.some((one) => one.toLowerCase().replace(/\.$/, '') === name.toLowerCase())
  const leadsBack = addresses.kind === 'found' && addresses.value.includes(address)
  const type = isIP(address) === 6 ? 'AAAA' : 'A'
  const missing = [
    ...elsewhere,
    ...(isNamed ? [] : [`set the PTR of ${address} to ${name}`]),
    ...(leadsBack ? [] : [`publish ${type} ${address} for ${name}`]),
  ]
  return { ptr: found, ...advised(missing) }
}

const shown = ({ address, ehloName, pool, warmUpFrom }: EgressSource, { config }: Installation) => ({
  address,
  ehloName: ehloName ?? config.hostname,
  pool,
  warmUpFrom: warmUpFrom?.toISOString() ?? null,
})

const line = (one: ReturnType<typeof shown> & Advice) =>
  `${one.address.padEnd(40)}${one.pool.padEnd(16)}${one.ehloName}` +
  (one.warmUpFrom === null ? '' : `  warm-up since ${one.warmUpFrom.slice(0, 10)}`) +
  (one.advice === null ? '' : `\n  advice: ${one.advice}`)

async function withAdvice(installation: Installation, sources: readonly EgressSource[]) {
  const resolver = openResolver({ servers: installation.config.resolvers, clock: installation.clock, ids: installation.ids })
  return Promise.all(
    sources.map(async (one) => ({
      ...shown(one, installation),
      ...(await adviceOn(resolver, one.address, one.ehloName ?? installation.config.hostname)),
    })),
  )
}

export const sourceAdd: Command = {
  name: 'source add',
  audited: true,
  summary: 'add an address of this machine as an egress source',
  help: `postrider source add ADDRESS [--name EHLO_NAME] [--pool POOL] [--warm-up] [--json]

Adds an egress source: an address of this machine that mail is sent from. Mail without an assigned pool uses the pool "${defaultPool}"; if that pool
has no address, the operating system chooses one.
--name     EHLO name, which the PTR of the address should also have (default: POSTRIDER_HOSTNAME)
--pool     pool of the address (default: ${defaultPool})
--warm-up  for a new address: limits its messages per day to each provider by a 30-day schedule; mail above the limit waits and uses no attempt
Run it again to change these settings. Takes effect within one second. Prints missing DNS records, and whether this machine has the address.`,
  options: { name: { type: 'string' }, pool: { type: 'string' }, 'warm-up': { type: 'boolean' }, ...jsonOption },
  positionals: ['ADDRESS'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const wanted = {
        address: given.positionals[0] as string,
        ehloName: text(given, 'name') ?? null,
        pool: text(given, 'pool') ?? defaultPool,
        warmUp: given.options['warm-up'] === true ? ('from now' as const) : ('none' as const),
      }
      const source = await addSource(installation.db, wanted, installation.clock.nowMs())
      const [added] = await withAdvice(installation, [source])
      if (added) printed(given, deps, added, line(added))
    }),
}

export const sourceList: Command = {
  name: 'source list',
  summary: 'list the egress sources',
  help: `postrider source list [--json]

Lists each address with its pool, EHLO name and warm-up, missing DNS records (a PTR with the name, and an address record that leads back),
and whether this machine has it.`,
  options: jsonOption,
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const sources = await withAdvice(installation, await listSources(installation.db))
      printed(
        given,
        deps,
        { sources },
        sources.length === 0 ? 'no egress sources: the operating system chooses the address' : sources.map(line).join('\n'),
      )
    }),
}

export const sourceRemove: Command = {
  name: 'source remove',
  audited: true,
  summary: 'remove an egress source',
  help: 'postrider source remove ADDRESS [--json]\n\nRemoves an egress source. Open connections finish their mail. You cannot remove the last address of a pool that mail is assigned to.',
  options: jsonOption,
  positionals: ['ADDRESS'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const source = await removeSource(installation.db, given.positionals[0] as string, installation.clock.nowMs())
      printed(given, deps, { address: source.address, removed: true }, `removed ${source.address}`)
    }),
}

const placeOptions = { tenant: { type: 'string' }, tag: { type: 'string' } } as const

async function placeOf(given: CommandArguments, installation: Installation): Promise<Omit<PoolAssignment, 'pool'>> {
  const [tenantId = '', tag = ''] = [await givenTenant(given, installation), text(given, 'tag')]
  if (tenantId === '' && tag === '') throw new UsageError('give --tenant, --tag or both')
  return { tenantId, tag }
}

const mailOf = ({ tenantId, tag }: Omit<PoolAssignment, 'pool'>) =>
  ['mail', ...(tag === '' ? [] : [`tagged ${tag}`]), ...(tenantId === '' ? [] : [`of ${tenantId}`])].join(' ')

export const poolAssign: Command = {
  name: 'pool assign',
  audited: true,
  summary: "assign a tenant's or a tag's mail to a pool",
  help: `postrider pool assign POOL [--tenant ID] [--tag TAG] [--json]

Sends the mail of a tenant, or mail with a tag, from the addresses of a pool. If several assignments match, the most specific wins: tenant and tag, then tenant, then tag. Applies to queued mail too.

Example: postrider pool assign bulk --tag newsletter`,
  options: { ...placeOptions, ...jsonOption },
  positionals: ['POOL'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const assigned = { ...(await placeOf(given, installation)), pool: given.positionals[0] as string }
      await assignPool(installation.db, assigned, installation.clock.nowMs())
      printed(given, deps, assigned, `${mailOf(assigned)} uses the pool ${assigned.pool}`)
    }),
}

export const poolUnassign: Command = {
  name: 'pool unassign',
  audited: true,
  summary: 'remove a pool assignment',
  help: `postrider pool unassign [--tenant ID] [--tag TAG] [--json]

Removes the assignment of a tenant, of a tag, or of both together. Their mail then uses the pool "${defaultPool}".

Example: postrider pool unassign --tag newsletter`,
  options: { ...placeOptions, ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const [tenantId = '', tag = ''] = [text(given, 'tenant'), text(given, 'tag')]
      const unassigned = await unassignPool(installation.db, { tenantId, tag }, installation.clock.nowMs())
      const mail = mailOf({ tenantId, tag })
      printed(
        given,
        deps,
        { tenantId, tag, unassigned },
        unassigned ? `removed the pool assignment of ${mail}` : `${mail} had no pool assignment`,
      )
    }),
}

export const poolList: Command = {
  name: 'pool list',
  summary: 'list pools, their addresses and their assigned mail',
  help: 'postrider pool list [--json]\n\nLists each pool with its addresses, and the mail that is assigned to it.',
  options: jsonOption,
  run: (given, deps) =>
    deps.withInstallation(async ({ db }) => {
      const [sources, assignments] = await Promise.all([listSources(db), listAssignments(db)])
      const pools = [...Map.groupBy(sources, (one) => one.pool)].map(([pool, some]) => ({
        pool,
        addresses: some.map((one) => one.address),
        assigned: assignments.filter((one) => one.pool === pool).map(({ tenantId, tag }) => ({ tenantId, tag })),
      }))
      const lines = pools.map(({ pool, addresses, assigned }) => {
        const mail = pool === defaultPool ? ['all other mail', ...assigned.map(mailOf)] : assigned.map(mailOf)
        return `${pool.padEnd(16)}${addresses.join(', ')}${mail.length === 0 ? '' : `\n  ${mail.join('\n  ')}`}`
      })
      printed(given, deps, { pools }, pools.length === 0 ? 'no pools: the operating system chooses the address' : lines.join('\n'))
    }),
}
