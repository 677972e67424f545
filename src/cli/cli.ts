/**
 * The command line door: one file for each kind of command.
 * Owns: nothing. Uses: base, mail, net, bounces, db, tenants, members, credentials, limits, domains, emails, spool, delivery, usage, webhooks,
 * housekeeping, installation, crash-test, doctor. Used by: main.
 * Promises: every command has --help; those that print data take --json; a wrong call says what to do instead and exits with 2.
 */
import { spawn } from 'node:child_process'
import { ConfigError, Refusal, settings } from '#base'
import { migrate } from '#db'
import type { House } from '#installation'
import { noteAct } from '#members'
import { backup, restore } from './backup.ts'
import { bounceParse } from './bounce.ts'
import { classifyCommand } from './classify.ts'
import { type Command, type CommandDeps, type Given, jsonOption, parseCall, printed, UsageError } from './command.ts'
import { crashTest } from './crash-test.ts'
import { dns } from './dns.ts'
import { doctor } from './doctor.ts'
import { erase } from './erase.ts'
import { listen } from './listen.ts'
import {
  explainCommand,
  queueCancel,
  queueFlush,
  queuePause,
  queueRelease,
  queueResume,
  queueShow,
  tenantPause,
  tenantResume,
} from './operate.ts'
import { domainAdd, keyCreate, limitsSet, memberAdd, memberList, memberReset, memberResetTotp, tenantCreate } from './records.ts'
import { send } from './send.ts'
import { poolAssign, poolList, poolUnassign, sourceAdd, sourceList, sourceRemove } from './sources.ts'
import { tlsList, tlsRequire, tlsWaive } from './tls.ts'
import { webhookReplay, webhookRotateKey } from './webhook.ts'

export type { CommandDeps } from './command.ts'

const serve: Command = {
  name: 'serve',
  summary: 'run the service',
  help: `postrider serve

Runs the service until it is told to stop (Ctrl-C or SIGTERM). Settings come from the environment:

${Object.values(settings)
  .map((one) => `  ${one.env.padEnd(36)}${one.means} (default: ${one.default})`)
  .join('\n')}`,
  options: {},
  run: (_given, deps) => deps.serve(),
}

const migrateCommand: Command = {
  name: 'migrate',
  summary: 'bring the database schema up to date',
  help: 'postrider migrate [--json]\n\nRuns the migrations that are missing. The service does this at its start too.',
  options: { ...jsonOption },
  run: (given, deps) =>
    deps.withHouse(
      async ({ db, clock }) => {
        const applied = await migrate(db, clock)
        printed(given, deps, { applied }, applied.length === 0 ? 'the schema is up to date' : `applied ${applied.join(', ')}`)
      },
      { mayBeNew: true },
    ),
}

const bench: Command = {
  name: 'bench',
  summary: 'measure this machine against its limits and its peers (in a checkout)',
  help: 'postrider bench [NAME] [--json]\n\nThe same as npm run bench: prints ratios against a limit or a peer measured in the same run.',
  options: { ...jsonOption },
  run: () => {
    throw new UsageError('in a checkout, use: npm run bench')
  },
}

const deliveryProcess: Command = {
  name: 'delivery-process',
  summary: 'one delivery process; started by serve',
  help: 'postrider delivery-process ID\n\nStarted by serve.',
  options: {},
  positionals: ['ID'],
  hidden: true,
  run: (given, deps) => deps.deliver(given.positionals[0] as string),
}

const inboundProcess: Command = {
  name: 'inbound-process',
  summary: 'the process of the SMTP listeners; started by serve',
  help: 'postrider inbound-process ID\n\nStarted by serve.',
  options: {},
  positionals: ['ID'],
  hidden: true,
  run: (_given, deps) => deps.receive(),
}

const webhooksProcess: Command = {
  name: 'webhooks-process',
  summary: 'one process that sends to webhooks; started by serve',
  help: 'postrider webhooks-process ID\n\nStarted by serve.',
  options: {},
  positionals: ['ID'],
  hidden: true,
  run: (given, deps) => deps.sendWebhooks(given.positionals[0] as string),
}

const commands: readonly Command[] = [
  serve,
  migrateCommand,
  keyCreate,
  tenantCreate,
  tenantPause,
  tenantResume,
  domainAdd,
  memberAdd,
  memberList,
  memberResetTotp,
  memberReset,
  limitsSet,
  sourceAdd,
  sourceList,
  sourceRemove,
  poolAssign,
  poolUnassign,
  poolList,
  // Before `queue`, which their first word is too.
  queuePause,
  queueResume,
  queueFlush,
  queueRelease,
  queueCancel,
  queueShow,
  explainCommand,
  tlsRequire,
  tlsWaive,
  tlsList,
  erase,
  backup,
  restore,
  doctor,
  dns,
  webhookReplay,
  webhookRotateKey,
  send,
  listen,
  bounceParse,
  classifyCommand,
  bench,
  crashTest,
  deliveryProcess,
  inboundProcess,
  webhooksProcess,
]

const overview = () => `postrider <command>

${commands
  .filter((one) => !one.hidden)
  .map((one) => `  ${one.name.padEnd(20)}${one.summary}`)
  .join('\n')}

postrider <command> --help tells more about each.`

/** The help of every command, for the documentation. @public */
export const commandsHelp = (): { name: string; help: string }[] =>
  commands.filter((one) => !one.hidden).map(({ name, help }) => ({ name, help }))

/** Runs the command line; the number is the exit code: 0, 1 for a fault, 2 for a wrong call or a refusal. */
export async function runCommand(words: readonly string[], deps: CommandDeps): Promise<number> {
  const command = commands.find((one) => one.name.split(' ').every((word, index) => words[index] === word))
  if (!command) {
    const asked = words.length === 0 || words.includes('--help') || words[0] === 'help'
    deps.print(asked ? overview() : `there is no command "${words.join(' ')}"; all of them: postrider --help`)
    return asked ? 0 : 2
  }
  const rest = words.slice(command.name.split(' ').length)
  if (rest.includes('--help')) {
    deps.print(command.help)
    return 0
  }
  if (command === bench) return runBench(rest)
  try {
    const given = parseCall(command, rest)
    await command.run(given, command.audited ? noting(command, given, deps) : deps)
    return 0
  } catch (error) {
    return told(error, command)
  }
}

/** The same house, bare or not, and in the end a note of who has done what. */
function noting({ name, audited }: Command, { options, positionals }: Given, deps: CommandDeps): CommandDeps {
  const { SUDO_USER, USER, LOGNAME } = deps.environment
  const { json: _, ...said } = options
  const entry = {
    actor: { kind: 'command' as const, name: SUDO_USER || USER || LOGNAME || 'unknown' },
    act: name.replaceAll(' ', '.'),
    tenantId: typeof options.tenant === 'string' ? options.tenant : null,
    requestId: null,
    ipAddress: null,
    data: audited === 'unnamed' ? {} : { words: positionals, ...said },
  }
  const noted = async <H extends Pick<House, 'db' | 'clock'>, T>(house: H, work: (house: H) => Promise<T>) => {
    const done = await work(house)
    await noteAct(house.db, entry, house.clock.nowMs())
    return done
  }
  return {
    ...deps,
    withHouse: (work, how) => deps.withHouse((house) => noted(house, work), how),
    withBareHouse: (work) => deps.withBareHouse((house) => noted(house, work)),
  }
}

function told(error: unknown, command: Command): number {
  if (error instanceof Refusal) console.error(`${error.message}\n${error.suggestion}`)
  else if (error instanceof UsageError || error instanceof ConfigError) console.error(error.message)
  else if (error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))
    console.error(`${error.message}\n\n${command.help}`)
  else {
    console.error(error instanceof Error ? error.message : error)
    return 1
  }
  return 2
}

function runBench(words: readonly string[]): Promise<number> {
  const script = new URL('../../bench/bench.ts', import.meta.url).pathname
  return new Promise((resolve) =>
    spawn(process.execPath, [script, ...words], { stdio: 'inherit' }).once('exit', (code) => resolve(code ?? 1)),
  )
}
