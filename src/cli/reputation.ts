/** The command for reputation: figures by sending domain, egress source or provider, blocklists, and changes since yesterday. */
import type { ReputationRetrieveData } from '#client'
import { type Grouping, groupings, maxDays } from '#reputation'
import { apiHelp, apiUsage, plain, tenantApiOptions, withApi } from './api.ts'
import { type Command, type CommandArguments, printed, text, UsageError } from './command-definition.ts'

type Group = ReputationRetrieveData['groups'][number]
type Source = ReputationRetrieveData['sources'][number]

const usualDays = 7

function daysOf(given: CommandArguments): number {
  const value = text(given, 'days') ?? String(usualDays)
  if (!/^\d{1,3}$/.test(value) || Number(value) < 1 || Number(value) > maxDays)
    throw new UsageError(`--days must be a whole number from 1 to ${maxDays}`)
  return Number(value)
}

function groupingOf(given: CommandArguments): Grouping {
  const wanted = text(given, 'by') ?? 'domain'
  const known = groupings.find((one) => one === wanted)
  if (known === undefined) throw new UsageError(`--by must be one of ${groupings.join(', ')}`)
  return known
}

const share = (part: number, whole: number) => (whole === 0 ? '-' : `${Number(((part / whole) * 100).toFixed(2))}%`)
const headings = ['attempts', 'accepted', 'deferred', 'failed', 'blocked', 'complaints', 'TLS', 'DMARC']

const cellsOf = ({ accepted, secured, deferred, failed, blocked, complained, dmarc }: Omit<Group, 'name'>) => {
  const attempts = accepted + deferred + failed + blocked
  return [
    String(attempts),
    share(accepted, attempts),
    share(deferred, attempts),
    share(failed, attempts),
    share(blocked, attempts),
    share(complained, accepted),
    share(secured, accepted),
    dmarc === null ? '-' : share(dmarc.aligned, dmarc.messages),
  ]
}

const nameWidth = 32
const cellWidth = 11
const lineOf = (name: string, cells: readonly string[]) =>
  `${plain(name).padEnd(nameWidth)}${cells.map((cell) => cell.padStart(cellWidth)).join('')}`

function sourceLine({ address, pool, warmUp, blocklists }: Source): string {
  const listed = blocklists.filter((one) => one.listed)
  const ignored = blocklists.filter((one) => one.problem !== null)
  const facts = [
    ...(pool === null ? [] : [`pool ${pool}`]),
    ...(warmUp === null ? [] : [`warm-up day ${warmUp.day}: ${warmUp.messagesPerDay} messages a day to each provider`]),
    ...listed.map(({ blocklist, codes, since }) => `LISTED by ${blocklist} since ${since.slice(0, 10)} (${codes.join(', ')})`),
    ...ignored.map(({ blocklist, problem }) => `${blocklist}: ${problem}`),
    ...(blocklists.length > 0 && listed.length === 0 ? [`not listed by ${blocklists.length - ignored.length} blocklists`] : []),
  ]
  return `  ${address}: ${facts.join('; ') || 'no warm-up, no blocklists asked'}`
}

function shown({ from, to, groupBy, totals, groups, moreGroups, sources, findings }: ReputationRetrieveData): string {
  const unnamed = groupBy === 'source' ? 'usual address' : 'unknown'
  return [
    `${from} to ${to} (UTC), by ${groupBy}`,
    lineOf('', headings),
    ...groups.map(({ name, ...figures }) => lineOf(name === '' ? unnamed : name, cellsOf(figures))),
    ...(moreGroups > 0 ? [`${moreGroups} smaller groups are not shown`] : []),
    lineOf('all', cellsOf(totals)),
    ...(sources.length === 0 ? [] : ['', 'Source addresses:', ...sources.map(sourceLine)]),
    '',
    findings.length === 0 ? 'No changes since yesterday' : 'Changes since yesterday:',
    ...findings.map(
      ({ severity, tenantId, text: sentence }) => `  ${severity}: ${plain(sentence)}${tenantId === null ? '' : ` (tenant ${tenantId})`}`,
    ),
  ].join('\n')
}

const filters = ['domain', 'source', 'provider'] as const

export const reputationCommand: Command = {
  name: 'reputation',
  summary: 'show how mailbox providers treat the mail, blocklists, and changes since yesterday',
  help: `postrider reputation [--by domain|source|provider] [--days N] [--domain D] [--source A] [--provider P] [--test] [--tenant ID]
                     ${apiUsage}

Prints the attempts by sending domain, source address or mailbox provider: the shares that were accepted, deferred, failed and blocked, complaints
and TLS of the accepted mail, and the DMARC pass rate that receivers report. Then the source addresses with warm-up and blocklists, and the changes
since yesterday.
--days           whole days in UTC up to today (default: ${usualDays}; at most ${maxDays})
--domain, --source, --provider  only this mail
--test           only simulated mail
${apiHelp}

Example: postrider reputation --by provider --days 30`,
  options: {
    by: { type: 'string' },
    days: { type: 'string' },
    ...Object.fromEntries(filters.map((name) => [name, { type: 'string' as const }])),
    test: { type: 'boolean' },
    ...tenantApiOptions,
  },
  values: { by: groupings },
  run(given, deps) {
    const [domain, source, provider] = filters.map((name) => text(given, name))
    const query = {
      days: daysOf(given),
      groupBy: groupingOf(given),
      test: given.options.test === true,
      domain,
      source,
      provider,
      tenantId: text(given, 'tenant'),
    }
    return withApi(given, deps, async ({ api }) => {
      const found = await api.reputation.retrieve(query)
      printed(given, deps, { ...found }, shown(found))
    })
  },
}
