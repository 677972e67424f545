/** Commands for the DKIM keys of sending domains: list, show, rotate, and give up a rotation. They read and change the database here. */
import { Refusal } from '#base'
import { cancelRotation, listDomainKeys, type OtherKey, requestRotation, type ShownKeys } from '#domains'
import type { Installation } from '#installation'
import { parseDomain } from '#mail'
import { givenTenant } from './command-arguments.ts'
import { type Command, type CommandArguments, jsonOption, printed, UsageError } from './command-definition.ts'

const minBits = 2048
const options = { tenant: { type: 'string' }, ...jsonOption } as const
const tenantHelp = '--tenant      tenant of the domain, if several tenants have a domain of this name'

const stateOf = ({ others, usedFrom }: ShownKeys): string => {
  const next = others.find(({ state }) => state === 'next')
  if (!next) return 'no rotation in progress'
  return usedFrom ? `${next.selector} seen, signs from ${usedFrom.toISOString()}` : `${next.selector} waits until its record is seen`
}

const bitsOf = ({ bits }: ShownKeys) => (bits < minBits ? `RSA ${bits} bits: weak` : `RSA ${bits} bits`)

const wireOf = ({ others, keySince, nextRecords, usedFrom, ...domain }: ShownKeys) => ({
  id: domain.id,
  name: domain.name,
  tenantId: domain.tenantId,
  selector: domain.selector,
  bits: domain.bits,
  weak: domain.bits < minBits,
  ownKey: domain.ownKey,
  delegated: domain.delegated,
  since: keySince,
  next: nextOf(others, usedFrom, nextRecords),
  kept: others.flatMap(({ state, selector, keepUntil }) => (state === 'retired' ? [{ selector, until: keepUntil }] : [])),
})

function nextOf(others: readonly OtherKey[], usedFrom: Date | null, records: ShownKeys['nextRecords']) {
  const next = others.find(({ state }) => state === 'next')
  if (!next) return null
  const { selector, createdAt, checkedAt, seenSince, problem } = next
  const shown = records.map(({ type, name, fullName, value }) => ({ type, name, fullName, value }))
  return { selector, createdAt, checkedAt, seenSince, usedFrom, problem, records: shown }
}

export const dkimList: Command = {
  name: 'dkim list',
  summary: 'list the DKIM keys of sending domains and their rotations',
  help: `postrider dkim list [--tenant ID] [--json]

Lists the sending domains of all tenants, or of one, with the length and age of the key that signs, and the rotation in progress. Keys of less
than ${minBits} bits are marked as weak.
With --json: {domains: [{id, name, tenantId, selector, bits, weak, ownKey, delegated, since, next, kept}]}.

Example: postrider dkim list`,
  options,
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const domains = await listDomainKeys(installation.db, (await givenTenant(given, installation)) ?? null)
      const line = (one: ShownKeys) =>
        `${one.name.padEnd(36)} ${bitsOf(one)}, ${one.selector} since ${one.keySince.toISOString().slice(0, 10)}${one.delegated ? ', CNAME' : ''}; ${stateOf(one)}`
      printed(
        given,
        deps,
        { domains: domains.map(wireOf) },
        domains.map(line).join('\n') || 'no sending domains. To add one: postrider domain add NAME',
      )
    }),
}

/** Refuses `not_found`. */
async function keysOf(given: CommandArguments, installation: Installation): Promise<ShownKeys> {
  const [name = ''] = given.positionals
  const wanted = parseDomain(name) ?? name
  const all = await listDomainKeys(installation.db, (await givenTenant(given, installation)) ?? null)
  const [found, ...others] = all.filter((one) => one.name === wanted)
  if (!found)
    throw new Refusal('not_found', {
      message: `no sending domain ${name}`,
      suggestion: 'Run postrider dkim list for all domains and their tenants',
    })
  if (others.length === 0) return found
  const owners = [found, ...others].map(({ tenantId }) => tenantId).join(', ')
  throw new UsageError(`several tenants have a domain ${name}: ${owners}. Name one with --tenant ID`)
}

function shownText(keys: ShownKeys): string {
  const next = keys.others.find(({ state }) => state === 'next')
  const kept = keys.others.filter(({ state }) => state === 'retired')
  return [
    `domain ${keys.name} (${keys.id}) of tenant ${keys.tenantId}: ${bitsOf(keys)}, selector ${keys.selector} since ${keys.keySince.toISOString()}`,
    `  ${stateOf(keys)}${next?.problem ? `\n  ${next.problem}` : ''}`,
    ...(next && !keys.delegated ? ['\nRecords to publish beside the present ones:', ...keys.nextRecords.map(recordLine)] : []),
    ...(next && keys.delegated ? ['  its record is published below the name of this installation: there is nothing to do'] : []),
    ...kept.map(({ selector, keepUntil }) => `  ${selector} no longer signs; its records must stay until ${keepUntil?.toISOString()}`),
  ].join('\n')
}

const recordLine = ({ type, fullName, value }: ShownKeys['nextRecords'][number]) => `  ${type.padEnd(6)}${fullName}\n        ${value}`

export const dkimShow: Command = {
  name: 'dkim show',
  summary: 'show the DKIM keys of a sending domain',
  help: `postrider dkim show DOMAIN [--tenant ID] [--json]

Prints the key that signs, the next keys with the records to publish, and the keys whose records must stay for mail that they signed.
${tenantHelp}

Example: postrider dkim show news.example.com`,
  options,
  positionals: ['DOMAIN'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const keys = await keysOf(given, installation)
      printed(given, deps, wireOf(keys), shownText(keys))
    }),
}

export const dkimRotate: Command = {
  name: 'dkim rotate',
  audited: true,
  summary: 'prepare new DKIM keys, which sign once DNS has their record',
  help: `postrider dkim rotate DOMAIN [--tenant ID] [--cancel] [--json]

Creates the next DKIM keys of a domain and prints their records. With CNAME selectors there is nothing to publish. The present keys go on
signing until every resolver of POSTRIDER_DNS has returned the new record for 24 hours. The records of the old keys must stay until the
time that postrider dkim show then names: mail that they signed may still be verified. Repeated, the command prints the same keys.
${tenantHelp}
--cancel      deletes the next keys, and the present ones go on signing

Example: postrider dkim rotate news.example.com`,
  options: { ...options, cancel: { type: 'boolean' } },
  positionals: ['DOMAIN'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const keys = await keysOf(given, installation)
      if (given.options.cancel !== true) {
        const rotated = await requestRotation(keys, installation)
        return printed(given, deps, wireOf(rotated), shownText(rotated))
      }
      if (!(await cancelRotation(installation.db, keys)))
        throw new Refusal('not_found', {
          message: `${keys.name} has no next DKIM keys`,
          suggestion: `To see its keys: postrider dkim show ${keys.name}`,
        })
      const left = await keysOf(given, installation)
      printed(given, deps, wireOf(left), `the next DKIM keys of ${keys.name} are deleted; ${keys.selector} goes on signing`)
    }),
}
