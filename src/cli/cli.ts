/**
 * Command line entry point: one file for each kind of command.
 * Owns: no tables. Uses: base, client (packages/client), mail, net, bounces, simulator, db, tenants, members, credentials, limits, domains,
 * emails, spool, tracking, certificates, accept, delivery, tls-reports, received-mail, webhooks, usage, reputation, privacy, housekeeping, installation,
 * crash-test, dns-updates, doctor, imports, agents. Used by: main.
 * Promises: every command and every first word of commands has --help; those that print data take --json; a usage error names the correct
 * call and exits with 2.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { getSystemErrorMessage } from 'node:util'
import { ConfigError, openLog, Refusal, settings } from '#base'
import { ApiError } from '#client'
import { migrate } from '#db'
import type { Installation } from '#installation'
import { recordAction } from '#members'
import { openWaker } from '#spool'
import { shownApiError } from './api.ts'
import { backup, restore } from './backup.ts'
import { bounceParse } from './bounce.ts'
import { certificateList, certificateRenew } from './certificates.ts'
import { classifyCommand } from './classify.ts'
import { type Command, type CommandArguments, type CommandDeps, jsonOption, parseCall, printed, UsageError } from './command-definition.ts'
import { completionOf } from './completion.ts'
import { crashTest } from './crash-test.ts'
import { dkimList, dkimRotate, dkimShow } from './dkim.ts'
import { dns } from './dns.ts'
import { doctor } from './doctor.ts'
import { domainAdd, domainList, domainRemove, domainShow, domainTrust, domainVerify } from './domains.ts'
import { emailCancel, emailList, emailReschedule, emailRetry, emailShow, explainCommand } from './emails.ts'
import { erase } from './erase.ts'
import { importDomainsCommand } from './import-domains.ts'
import { importPostalCommand } from './import-postal.ts'
import { importSuppressionsCommand } from './import-suppressions.ts'
import { importWebhooksCommand } from './import-webhooks.ts'
import { keyCreate, keyList, keyRevoke, keyUpdate } from './keys.ts'
import { limitsList, limitsSet } from './limits.ts'
import { listen } from './listen.ts'
import { mcpCommand } from './mcp.ts'
import { memberAdd, memberList, memberRemove, memberReset, memberResetTotp, memberUpdate } from './members.ts'
import { privacyReport, privacySet } from './privacy.ts'
import { queueCancel, queueFlush, queuePause, queueRelease, queueResume, queueShow, tenantPause, tenantResume } from './queue-admin.ts'
import { receivedList, receivedShow } from './received.ts'
import { reputationCommand } from './reputation.ts'
import { routeAdd, routeList, routeRemove, routeUpdate } from './routes.ts'
import { secretRotate } from './secret.ts'
import { sendCommand } from './send.ts'
import { poolAssign, poolList, poolUnassign, sourceAdd, sourceList, sourceRemove } from './sources.ts'
import { alarming, strong } from './styles.ts'
import { suppressionAdd, suppressionList, suppressionRemove } from './suppressions.ts'
import { templateDelete, templateList, templatePreview, templatePublish, templatePush } from './templates.ts'
import { tenantCreate, tenantDelete, tenantList, tenantShow } from './tenants.ts'
import { tlsList, tlsRemove, tlsReports, tlsRequire } from './tls.ts'
import { transportAdd, transportList, transportRemove, transportSet, transportShare, transportTest } from './transports.ts'
import { webhookAdd, webhookList, webhookRemove, webhookReplay, webhookRotateKey, webhookTest } from './webhooks.ts'

const serve: Command = {
  name: 'serve',
  summary: 'run the service',
  help: `postrider serve

Runs the service until Ctrl-C or SIGTERM. The environment has the settings:

${Object.values(settings)
  .map((one) => `  ${`${one.env} `.padEnd(36)}${one.means} (default: ${one.default})`)
  .join('\n')}`,
  options: {},
  run: (_given, deps) => deps.serve(),
}

const migrateCommand: Command = {
  name: 'migrate',
  summary: 'bring the database schema up to date',
  help: 'postrider migrate [--json]\n\nRuns all pending migrations. The service also does this at start.',
  options: { ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(
      async ({ db, clock, config: { logFormat } }) => {
        const log = openLog({ logLevel: 'warn', logFormat }, 'command', process.stderr)
        const applied = await migrate(db, clock, { log })
        printed(given, deps, { applied }, applied.length === 0 ? 'the schema is up to date' : `applied ${applied.join(', ')}`)
      },
      { mayBeNew: true },
    ),
}

const bench: Command = {
  name: 'bench',
  summary: 'measure this machine against its limits and other mail servers (in a checkout)',
  help: 'postrider bench [NAME] [--json]\n\nSame as npm run bench. Prints ratios to a limit or a peer that is measured in the same run.',
  options: { ...jsonOption },
  positionals: ['NAME?'],
  run: () => {
    throw new UsageError('bench works only in a checkout. Run npm run bench there')
  },
}

const versionCommand: Command = {
  name: 'version',
  summary: 'print the version',
  help: 'postrider version [--json]\n\nPrints the version of Postrider; postrider --version does the same.\n\nExample: postrider version --json',
  options: { ...jsonOption },
  run: async (given, deps) => printed(given, deps, { version: deps.version, node: process.versions.node }, deps.version),
}

/** The commands by topic, as --help lists them. */
const topics: Readonly<Record<string, readonly Command[]>> = {
  Service: [
    serve,
    doctor,
    dns,
    mcpCommand,
    migrateCommand,
    backup,
    restore,
    secretRotate,
    crashTest,
    bench,
    versionCommand,
    completionOf(() => commands),
  ],
  Emails: [sendCommand, emailList, emailShow, emailRetry, emailCancel, emailReschedule, explainCommand, listen, erase],
  // Before `queue`, the commands that begin with it.
  'Queue and delivery': [
    queuePause,
    queueResume,
    queueFlush,
    queueRelease,
    queueCancel,
    queueShow,
    transportAdd,
    transportSet,
    transportList,
    transportShare,
    transportTest,
    transportRemove,
    reputationCommand,
    sourceAdd,
    sourceList,
    sourceRemove,
    poolAssign,
    poolUnassign,
    poolList,
    tlsRequire,
    tlsRemove,
    tlsList,
    tlsReports,
  ],
  'Bounces and suppressions': [suppressionList, suppressionAdd, suppressionRemove, bounceParse, classifyCommand],
  'Domains and webhooks': [
    domainAdd,
    domainList,
    domainShow,
    domainVerify,
    domainTrust,
    domainRemove,
    dkimList,
    dkimShow,
    dkimRotate,
    certificateList,
    certificateRenew,
    webhookList,
    webhookAdd,
    webhookRemove,
    webhookTest,
    webhookReplay,
    webhookRotateKey,
  ],
  'Tenants, keys and members': [
    tenantCreate,
    tenantList,
    tenantShow,
    tenantDelete,
    tenantPause,
    tenantResume,
    routeList,
    routeAdd,
    routeUpdate,
    routeRemove,
    receivedList,
    receivedShow,
    templateList,
    templatePush,
    templatePublish,
    templatePreview,
    templateDelete,
    keyCreate,
    keyList,
    keyUpdate,
    keyRevoke,
    memberAdd,
    memberList,
    memberUpdate,
    memberResetTotp,
    memberReset,
    memberRemove,
    limitsSet,
    limitsList,
    privacySet,
    privacyReport,
  ],
  'Move in': [importPostalCommand, importDomainsCommand, importWebhooksCommand, importSuppressionsCommand],
}

const commands = Object.values(topics).flat()

const firstSteps = `

Commands for domains, emails, keys, suppressions, tenants and webhooks also work on a remote service: see --url in their --help.

First steps:
  postrider serve     run the service; the first start prints keys, a sign-in link and a curl command
  postrider doctor    check the installation and print a remedy for each problem
  postrider queue     show queued mail and the reasons for delays`

const lineOf = ({ name, summary }: Command) => `  ${name.padEnd(20)}${summary}`

const allByTopic = () =>
  Object.entries(topics)
    .map(([topic, some]) => [strong(`${topic}:`), ...some.map(lineOf)].join('\n'))
    .join('\n\n')

const overview = (some: readonly Command[]) => `${strong('Usage:')} postrider <command> [options]

${some === commands ? allByTopic() : some.map(lineOf).join('\n')}

Run postrider <command> --help for the details of a command.${some === commands ? firstSteps : ''}`

/** The help of every command, for the documentation. @public */
export const commandsHelp = (): { name: string; help: string }[] => commands.map(({ name, help }) => ({ name, help }))

const asksHelp = (word: string | undefined) => word === '--help' || word === '-h'
const begins = (word: string | undefined) => commands.filter(({ name }) => name === word || name.startsWith(`${word} `))

/** After a command that is also the first word of others, a further word belongs to the name: `queue fulsh` is not `queue`. */
function commandOf(words: readonly string[]): Command | undefined {
  const found = commands.find((one) => one.name.split(' ').every((word, index) => words[index] === word))
  const next = words[found?.name.split(' ').length ?? 0]
  return found && next !== undefined && !next.startsWith('-') && begins(found.name).length > 1 ? undefined : found
}

/** Without the options, which may contain a key. */
function noSuchCommand(words: readonly string[]): string {
  const end = words.findIndex((word, index) => index > 0 && word.startsWith('-'))
  const near = begins(words[0])
  if (near.length > 0 && (end === 1 || words.length === 1))
    return `${words[0]} needs a further word: ${near.map(({ name }) => name).join(', ')}`
  return (
    `unknown command "${words.slice(0, end < 0 ? words.length : end).join(' ')}". ` +
    (near.length === 0 ? 'Run postrider --help for all commands' : `Available: ${near.map(({ name }) => name).join(', ')}`)
  )
}

/** Runs the command line; returns the exit code: 0, 1 for a failure, 2 for a usage error or a refusal. */
export async function runCommand(given: readonly string[], deps: CommandDeps): Promise<number> {
  const words = given[0] === 'help' ? [...given.slice(1), '--help'] : given[0] === '--version' ? ['version', ...given.slice(1)] : given
  const command = commandOf(words)
  if (!command) {
    const some = words.length === 0 || asksHelp(words[0]) ? commands : asksHelp(words[1]) ? begins(words[0]) : []
    if (some.length > 0) deps.print(overview(some))
    else console.error(alarming(noSuchCommand(words)))
    return some.length > 0 ? 0 : 2
  }
  const rest = words.slice(command.name.split(' ').length)
  if (rest.some(asksHelp)) {
    deps.print(command.help)
    return 0
  }
  if (command === bench && existsSync(benchScript)) return runBench(rest)
  try {
    const call = parseCall(command, rest)
    await command.run(call, command.audited ? recording(command, call, deps) : deps)
    return 0
  } catch (error) {
    return printError(error, command)
  }
}

/** Wraps the database access so that the command's audit entry is written at the end. */
function recording({ name, audited }: Command, { options, positionals }: CommandArguments, deps: CommandDeps): CommandDeps {
  const { SUDO_USER, USER, LOGNAME } = deps.environment
  const { json: _, ...namedOptions } = options
  const entry = {
    actor: { kind: 'command' as const, name: SUDO_USER || USER || LOGNAME || 'unknown' },
    action: name.replaceAll(' ', '.'),
    tenantId: typeof options.tenant === 'string' && options.tenant !== 'organisation' ? options.tenant : null,
    requestId: null,
    ipAddress: null,
    data: audited === 'unnamed' ? {} : { words: positionals, ...namedOptions },
  }
  const recorded = async <H extends Pick<Installation, 'db' | 'clock'>, T>(installation: H, work: (installation: H) => Promise<T>) => {
    const done = await work(installation)
    await recordAction(installation.db, entry, installation.clock.nowMs())
    openWaker(installation)()
    return done
  }
  return {
    ...deps,
    withInstallation: (work, how) => deps.withInstallation((installation) => recorded(installation, work), how),
    withRawDatabase: (work) => deps.withRawDatabase((installation) => recorded(installation, work)),
  }
}

function printError(error: unknown, command: Command): number {
  if (error instanceof ApiError) {
    const { lines, exitCode } = shownApiError(error, command)
    console.error(alarming(lines))
    return exitCode
  }
  if (error instanceof Refusal) {
    const isAboutCall = !error.hasOwnSuggestion && (error.code === 'validation_error' || error.code === 'not_found')
    console.error(alarming(`${error.message}\n${isAboutCall ? `Run postrider ${command.name} --help for usage` : error.suggestion}`))
  } else if (error instanceof UsageError || error instanceof ConfigError) console.error(alarming(error.message))
  else if (error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))
    // Removes Node's advice on arguments that begin with a dash.
    console.error(alarming(`${error.message.split('. To specify')[0]}\n\n${command.help}`))
  else {
    console.error(error instanceof Error ? alarming(sentenceOf(error)) : error)
    return 1
  }
  return 2
}

/** For a file error: the file's name and the problem in place of the system call. */
const sentenceOf = (error: Error) =>
  'path' in error && 'errno' in error && typeof error.errno === 'number'
    ? `${String(error.path)}: ${getSystemErrorMessage(error.errno)}`
    : error.message

/** Not part of the packages. */
const benchScript = fileURLToPath(new URL('../../bench/bench.ts', import.meta.url))

function runBench(words: readonly string[]): Promise<number> {
  return new Promise((resolve) =>
    spawn(process.execPath, [benchScript, ...words], { stdio: 'inherit' }).once('exit', (code) => resolve(code ?? 1)),
  )
}
