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
import { type Command, type CommandArguments, givenTenant, jsonOption, printed, text, UsageError } from './command-definition.ts'

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
  const elsewhere = isHere ? [] : ['give this machine the address, or nothing is sent from it here']
  const advised = (advice: string[]) => ({ isHere, advice: advice.length === 0 ? null : advice.join(', and ') })
  if (ptr.kind === 'trouble' || addresses.kind === 'trouble')
    return { ptr: null, ...advised([...elsewhere, 'ask again about its PTR, for DNS could not be asked (POSTRIDER_DNS)']) }
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
  summary: 'send from this address of the machine',
  help: `postrider source add ADDRESS [--name EHLO_NAME] [--pool POOL] [--warm-up] [--json]

Mail without a pool of its own goes from the pool "${defaultPool}"; while that has no address, from the one that the system chooses.
--name     what is said in EHLO, and what the address's PTR should say (default: POSTRIDER_HOSTNAME)
--pool     which pool it is in (default: ${defaultPool})
--warm-up  a new address: its messages a day to each provider grow by a schedule over 30 days; what is over waits and costs no attempt
Given again, it changes what was said of the address. In force within a second. Prints what DNS lacks for it, and whether this machine has it.`,
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
  summary: 'the addresses that mail is sent from',
  help: `postrider source list [--json]

Shows each address with its pool, its name in EHLO and its warm-up, what DNS lacks (a PTR that says the name,
and the name leading back), and whether this machine has it.`,
  options: jsonOption,
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const sources = await withAdvice(installation, await listSources(installation.db))
      printed(given, deps, { sources }, sources.length === 0 ? 'the system chooses the address' : sources.map(line).join('\n'))
    }),
}

export const sourceRemove: Command = {
  name: 'source remove',
  audited: true,
  summary: 'send from this address no more',
  help: 'postrider source remove ADDRESS [--json]\n\nConnections that are open finish what they have. The last address of a pool that mail is assigned to stays.',
  options: jsonOption,
  positionals: ['ADDRESS'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const source = await removeSource(installation.db, given.positionals[0] as string, installation.clock.nowMs())
      printed(given, deps, { address: source.address, removed: true }, `${source.address} is no longer sent from`)
    }),
}

const placeOptions = { tenant: { type: 'string' }, tag: { type: 'string' } } as const

async function placeOf(given: CommandArguments, installation: Installation): Promise<Omit<PoolAssignment, 'pool'>> {
  const [tenantId = '', tag = ''] = [await givenTenant(given, installation), text(given, 'tag')]
  if (tenantId === '' && tag === '') throw new UsageError('give --tenant, --tag, or both')
  return { tenantId, tag }
}

const mailOf = ({ tenantId, tag }: Omit<PoolAssignment, 'pool'>) =>
  ['mail', ...(tag === '' ? [] : [`tagged ${tag}`]), ...(tenantId === '' ? [] : [`of ${tenantId}`])].join(' ')

export const poolAssign: Command = {
  name: 'pool assign',
  audited: true,
  summary: "send a tenant's or a tag's mail from one pool only",
  help: `postrider pool assign POOL [--tenant ID] [--tag TAG] [--json]

Of several that fit, the one for the tenant and the tag counts, then the one for the tenant, then the one for the tag. Queued mail follows.`,
  options: { ...placeOptions, ...jsonOption },
  positionals: ['POOL'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const assigned = { ...(await placeOf(given, installation)), pool: given.positionals[0] as string }
      await assignPool(installation.db, assigned, installation.clock.nowMs())
      printed(given, deps, assigned, `${mailOf(assigned)} goes from the pool ${assigned.pool}`)
    }),
}

export const poolUnassign: Command = {
  name: 'pool unassign',
  audited: true,
  summary: 'undo pool assign',
  help: 'postrider pool unassign [--tenant ID] [--tag TAG] [--json]',
  options: { ...placeOptions, ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const [tenantId = '', tag = ''] = [text(given, 'tenant'), text(given, 'tag')]
      const unassigned = await unassignPool(installation.db, { tenantId, tag }, installation.clock.nowMs())
      const mail = mailOf({ tenantId, tag })
      printed(given, deps, { tenantId, tag, unassigned }, unassigned ? `${mail} has no pool of its own` : `${mail} had no pool of its own`)
    }),
}

export const poolList: Command = {
  name: 'pool list',
  summary: 'the pools, their addresses and whose mail goes from them',
  help: 'postrider pool list [--json]',
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
      printed(given, deps, { pools }, pools.length === 0 ? 'there are no pools: the system chooses the address' : lines.join('\n'))
    }),
}
