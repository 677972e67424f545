/** `postrider import postal`: compares Postal's database, or a dump of it, with this installation, and with --apply brings the missing records. */
import { openCommit, openMoved } from '#accept'
import { openDomains } from '#domains'
import { type ImportReport, importPostal, loadDump, openPostalSource } from '#imports'
import type { Installation } from '#installation'
import { openLimitSettings } from '#limits'
import { openWaker } from '#spool'
import { openTenants } from '#tenants'
import { openTracks } from '#tracking'
import { plain } from './api.ts'
import { type Command, type CommandArguments, type CommandDeps, jsonOption, printed, text, UsageError } from './command-definition.ts'
import { outboundOf } from './import-webhooks.ts'
import { openProgress } from './progress.ts'
import { alarming, strong } from './styles.ts'

const usualPrefix = 'postal'
const usualIdentifier = 'postal'
/** Notes of one kind that are printed; --json has all. */
const shownNotes = 20

export const importPostalCommand: Command = {
  name: 'import postal',
  audited: 'unnamed',
  summary: 'bring the servers, domains, keys and lists of Postal',
  help: `postrider import postal [URL | --dump FILE] [--apply] [--queued] [--history [--since DATE]]
                        [--message-prefix P] [--dkim-identifier D] [--json]

Reads the MariaDB of Postal, compares it with this installation, and prints a table of the records that are missing here. Changes nothing
without --apply. With --apply it writes the missing records: servers become tenants, users members, and domains come with their DKIM keys and
selectors, credentials with their keys, webhooks in the format of Postal, suppressions with their end, track domains, send limits, and IP
addresses that this machine has. Records that exist here stay as they are: run it again after an interruption, or to bring later changes.
URL                mysql://user:password@host:port/database of the main database (default: the variable POSTAL_DATABASE_URL, which other users of
                   the machine cannot see). For a socket: mysql://user@localhost/postal?socketPath=/run/mysqld/mysqld.sock
--dump FILE        reads a dump instead: mariadb-dump --databases postal postal-server-1 …, or --all-databases; it may end with .gz. A MariaDB of
                   its own loads it into the folder for temporary files (TMPDIR), and is deleted afterwards
--database NAME    of the main database in the dump (default: ${usualPrefix})
--apply            writes the missing records
--queued           also brings the messages that wait in the queue of Postal: each becomes an email that is sent once. Stop Postal first (postal
                   stop), and do not start it again with this queue: it would send them too
--history          also brings the finished messages of Postal with their delivery attempts, without their content. They are in lists and searches,
                   and cause no events, webhooks or usage. Messages older than emails are kept do not come
--since            only the history from this date on, such as 2026-01-31
--message-prefix   prefix of the databases of servers, message_db.database_name_prefix in Postal (default: ${usualPrefix})
--dkim-identifier  first part of the selectors, dns.dkim_identifier in Postal (default: ${usualIdentifier})
Passwords do not come: give each member a sign-in link with postrider member reset ADDRESS --tenant ID.

Example: POSTAL_DATABASE_URL=mysql://postal:secret@127.0.0.1/postal postrider import postal`,
  options: {
    dump: { type: 'string' },
    database: { type: 'string' },
    apply: { type: 'boolean' },
    queued: { type: 'boolean' },
    history: { type: 'boolean' },
    since: { type: 'string' },
    'message-prefix': { type: 'string' },
    'dkim-identifier': { type: 'string' },
    ...jsonOption,
  },
  positionals: ['URL?'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const { apply, queued, ...messages } = optionsOf(given)
      const progress = openProgress(deps.clock)
      const show = (state: string) => progress.show(state)
      const { url, dump } = await sourceOf(given, deps, show)
      try {
        const source = await openPostalSource({ url, messagePrefix: text(given, 'message-prefix') ?? usualPrefix })
        try {
          const report = await importPostal(source, importDepsOf(installation), { apply, queued, ...messages, progress: show })
          progress.end()
          printed(given, deps, { applied: apply, ...report }, shown(report, apply))
        } finally {
          await source.close()
        }
      } finally {
        progress.end()
        await dump?.[Symbol.asyncDispose]()
      }
    }),
}

const optionsOf = (given: CommandArguments) => ({
  apply: given.options.apply === true,
  queued: given.options.queued === true,
  historySince: historySinceOf(given),
  dkimIdentifier: text(given, 'dkim-identifier') ?? usualIdentifier,
})

/** The running database, or one that was loaded from the dump. */
async function sourceOf(given: CommandArguments, deps: CommandDeps, show: (state: string) => void) {
  const file = text(given, 'dump')
  if (file === undefined) {
    if (text(given, 'database') !== undefined) throw new UsageError('--database needs --dump')
    const url = given.positionals[0] ?? deps.environment.POSTAL_DATABASE_URL
    if (url === undefined || !URL.canParse(url))
      throw new UsageError('give the URL of the main database, set POSTAL_DATABASE_URL, or give --dump FILE')
    return { url, dump: undefined }
  }
  if (given.positionals.length > 0) throw new UsageError('give a URL or --dump, not both')
  show(`loading ${file}`)
  const dump = await loadDump(file, {
    clock: deps.clock,
    path: deps.environment.PATH ?? '',
    progress: (part) => show(`loading ${file}: ${Math.floor(part * 100)}%`),
  })
  return { url: dump.url(text(given, 'database') ?? usualPrefix), dump }
}

const importDepsOf = (installation: Installation) => ({
  ...installation,
  webhooks: outboundOf(installation).webhooks,
  acceptMoved: acceptMovedOf(installation),
  keepEmailDays: installation.config.keepEmailDays,
})

/** undefined: no history. */
function historySinceOf(given: CommandArguments): Date | undefined {
  const since = text(given, 'since')
  if (given.options.history !== true) {
    if (since !== undefined) throw new UsageError('--since needs --history')
    return undefined
  }
  const at = new Date(since === undefined ? 0 : since)
  if (since !== undefined && (!/^\d{4}-\d{2}-\d{2}/.test(since) || Number.isNaN(at.getTime())))
    throw new UsageError('--since must be a date, such as 2026-01-31')
  return at
}

function acceptMovedOf({ db, clock, ids, secrets, config }: Installation) {
  const { sandboxSender, hostname, publicUrl } = config
  const limitSettings = openLimitSettings({ db, clock, config })
  const commit = openCommit({ db, clock, ids, limitSettings, wake: openWaker({ db, clock }) })
  const senders = { domains: openDomains({ db, clock, secrets }), tracks: openTracks({ db, clock }), sandboxSender, hostname }
  return openMoved({ db, clock, ids, tenants: openTenants({ db, clock }), publicUrl, commit, ...senders })
}

function shown({ counts, notes }: ImportReport, apply: boolean): string {
  const head = `${''.padEnd(16)}${'in Postal'.padStart(10)}${(apply ? 'brought' : 'missing').padStart(10)}${apply ? 'failed'.padStart(10) : ''}`
  const rows = Object.entries(counts).map(([kind, { found, missing, failed }]) => {
    const numbers = apply ? [found, missing - failed, failed] : [found, missing]
    return `${kind.padEnd(16)}${numbers.map((one) => one.toLocaleString('en').padStart(10)).join('')}`
  })
  const groups = [...Map.groupBy(notes, ({ about }) => about)].map(([about, some]) => {
    const lines = some.slice(0, shownNotes).map(({ name, text: problem }) => `  ${plain(name)}: ${plain(problem)}`)
    const more = some.length > shownNotes ? [`  and ${some.length - shownNotes} more: --json lists all`] : []
    return [`${alarming(about)}`, ...lines, ...more].join('\n')
  })
  const next = apply
    ? 'Next: postrider domain list, and the sign-in links of members with postrider member reset ADDRESS --tenant ID.'
    : 'Nothing was changed. To bring the missing records, run the command again with --apply.'
  return [strong(head), ...rows, '', ...groups, ...(groups.length > 0 ? [''] : []), next].join('\n')
}
