/** All commands by topic, and their overview. A process loads them only for a command that is not among the early ones. */
import { openLog } from '#base'
import { migrate } from '#db'
import { backup, restore } from './backup.ts'
import { bench } from './bench.ts'
import { bounceParse } from './bounce.ts'
import { certificateList, certificateRenew } from './certificates.ts'
import { classifyCommand } from './classify.ts'
import { asksHelp, type Command, type CommandDeps, jsonOption, printed } from './command-definition.ts'
import { completionOf } from './completion.ts'
import { crashTest } from './crash-test.ts'
import { dkimList, dkimRotate, dkimShow } from './dkim.ts'
import { dns } from './dns.ts'
import { doctor } from './doctor.ts'
import { domainAdd, domainList, domainRemove, domainShow, domainTrust, domainVerify } from './domains.ts'
import { serve, versionCommand } from './early-commands.ts'
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

export const commands: readonly Command[] = Object.values(topics).flat()

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

const begins = (word: string | undefined) => commands.filter(({ name }) => name === word || name.startsWith(`${word} `))

/** After a command that is also the first word of others, a further word belongs to the name: `queue fulsh` is not `queue`. */
export function commandOf(words: readonly string[]): Command | undefined {
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

/** For words that name no command: prints their help or their error. Returns the exit code. */
export function showCommands(words: readonly string[], deps: Pick<CommandDeps, 'print'>): number {
  const some = words.length === 0 || asksHelp(words[0]) ? commands : asksHelp(words[1]) ? begins(words[0]) : []
  if (some.length > 0) deps.print(overview(some))
  else console.error(alarming(noSuchCommand(words)))
  return some.length > 0 ? 0 : 2
}
