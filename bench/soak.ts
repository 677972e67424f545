/**
 * `npm run soak [-- --minutes 120 --rate 200 --json]`: the whole program for hours at a steady rate, with webhooks, opens and deferrals, and
 * measurements each minute. Passes if no figure drifts in the second half, no email is lost, and the service is idle again afterwards. The
 * memory of the soak itself does not grow with the number of emails.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { silentLog } from '#base'
import { type Db, embeddedUrlIfRunning, openDb, sql } from '#db'
import { type ServiceProcess, startServiceProcess } from '../test/support/spawned-service.ts'
import { compiledProgram } from './compiled-program.ts'
import { askChild, endChild, type Sink, startChild, startSink } from './helpers.ts'
import { ProcessorSpeed } from './processor-speed.ts'
import type { LoadFigures, SoakLoadOptions } from './soak-load.ts'
import { type Figures, fixedComputation, Sampler } from './soak-samples.ts'
import type { SoakCounts } from './soak-sink.ts'
import { failuresOf, type IdleAgain, idleAgain, type SoakResult, summaryLines, warmUpMinutes } from './soak-summary.ts'

const usage = `npm run soak [-- --minutes 120] [--rate 200] [--json]

Builds the package, and runs the whole program from it for --minutes at --rate messages a second, with webhooks, opens and deferrals.
Measures memory, processor time, table sizes, latencies and the queue each minute, and judges their drift in the second half.
Exits with 1 if a check fails.
--json prints one object at the end; progress goes to standard error.`

const domain = 'shop.soak.test'
const minuteMs = 60_000
/** By then the start's own work is done. */
const settleMs = minuteMs
/** A process returns memory after two minutes of rest. */
const restMs = 3 * minuteMs
const maxDrainMinutes = 5
const maxIdleMinutes = 10
const environment = {
  POSTRIDER_RATE_LIMIT: 'unlimited',
  POSTRIDER_SEND_LIMIT: 'unlimited',
  POSTRIDER_LOG_LEVEL: 'error',
  POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
  // The first retry is after 39 s, so that deferred mail soon reaches its steady number.
  POSTRIDER_RETRY_BASE_SECONDS: '30',
}

const verifyDomain = sql`
  update domains
  set verified = true
  where name = $1`
/** No check of DNS for as long as the soak runs: housekeeping makes a track domain due that has no next check. */
const verifyTracks = sql`
  update track_domains
  set dns_status = 'ok', next_check_at = created_at + interval '30 days'`
const defaultTenant = sql<{ id: string }>`
  select id
  from tenants
  where is_default`
const finalCounts = sql<{ queued: number; opens: number }>`
  select (select count(*) from spool)::integer as queued, (select count(*) from tracking_events)::integer as opens`

interface World extends AsyncDisposable {
  service: ServiceProcess
  db: Db
  sampler: Sampler
  receiver: Sink
  outside(): Promise<SoakCounts>
}

const must = (answer: { status: number; body: object }, what: string): void => {
  if (answer.status >= 300) throw new Error(`${what} was refused: ${JSON.stringify(answer.body)}`)
}

/** The service with a tracked sending domain and a webhook for all events, the SMTP server that it relays to, and the webhook's receiver. */
async function openWorld(note: Note): Promise<World> {
  const program = compiledProgram(note)
  const { child: sink, first } = await startChild<{ port: number }>('soak-sink.ts')
  const receiver = await startSink('http-sink.ts')
  const service = await startServiceProcess({ ...environment, POSTRIDER_RELAY: `smtp://127.0.0.1:${first.port}` }, program)
  const url = (await embeddedUrlIfRunning(service.folder)) as string
  const db = await openDb({ url, poolSize: 1, applicationName: 'soak', log: silentLog })
  await service.command('domain', 'add', domain, '--trust')
  await db.run(verifyDomain, [domain])
  const { domains } = (await service.call('GET', '/domains')).body.data as { domains: { id: string; name: string }[] }
  const domainId = domains.find((one) => one.name === domain)?.id
  must(await service.call('POST', '/tracking', { domainId, name: 'click', trackOpens: true, trackClicks: true }), 'the track domain')
  await db.run(verifyTracks)
  const hook = { name: 'soak', url: `http://127.0.0.1:${receiver.port}/`, allEvents: true }
  must(await service.call('POST', '/webhooks', hook), 'the webhook')
  sink.send({ openAt: Number(new URL(service.url).port) })
  const { serve, postgres } = await service.processes()
  const tenantId = (await db.first(defaultTenant))?.id as string
  return {
    service,
    db,
    sampler: new Sampler({ db, tenantId, roots: [serve, postgres ?? 0] }),
    receiver,
    outside: () => askChild(sink, 'count'),
    async [Symbol.asyncDispose]() {
      await db.close()
      await service[Symbol.asyncDispose]()
      await receiver.stop()
      await endChild(sink)
    },
  }
}

interface Load extends AsyncDisposable {
  /** The figures since the call before. */
  figures(): Promise<LoadFigures>
  /** Resolves after the last response, or after a minute. */
  stop(): Promise<LoadFigures>
}

async function startLoad({ service }: World, rate: number): Promise<Load> {
  const { child } = await startChild('soak-load.ts')
  const options: SoakLoadOptions = { port: Number(new URL(service.url).port), key: service.liveKey, domain, rate }
  await askChild(child, options)
  return {
    figures: () => askChild(child, 'figures'),
    stop: () => askChild(child, 'stop'),
    [Symbol.asyncDispose]: () => endChild(child),
  }
}

/** Calls `each` at the end of every minute from now, without drift, until it returns false. */
async function everyMinute(minutes: number, each: (minute: number) => Promise<boolean>): Promise<void> {
  const beganMs = performance.now()
  for (let minute = 1; minute <= minutes; minute++) {
    await wait(Math.max(0, beganMs + minute * minuteMs - performance.now()))
    if (!(await each(minute))) return
  }
}

const whole = (value: number | undefined) => (value === undefined ? '-' : Math.round(value).toLocaleString('en'))

const progressLine = (minute: number, { accepted, failed }: LoadFigures, figures: Figures, { opened, failedOpens }: SoakCounts) =>
  `${minute} min: ${whole(accepted)} accepted, ${failed} failed; ${whole(opened)} opens, ${failedOpens} failed; acceptance p50 ${figures['acceptance p50, ms']?.toFixed(1)} p99 ${figures['acceptance p99, ms']?.toFixed(1)} ms; ` +
  `to sent p50 ${whole(figures['acceptance to sent, p50, ms'])} p99 ${whole(figures['acceptance to sent, p99, ms'])} ms; queue ${whole(figures['queue, ready or in flight'])} + ${whole(figures['queue, deferred'])} deferred; ` +
  `memory ${whole(figures['memory in all, MiB'])} MiB; processor ${whole(figures['processor time in all, % of a core'])}%`

/** The load for so many minutes; a sample for each. */
async function runLoad(
  world: World,
  options: { minutes: number; rate: number },
  note: Note,
): Promise<{ sent: LoadFigures; samples: Figures[] }> {
  const samples: Figures[] = []
  await world.sampler.sample()
  await using load = await startLoad(world, options.rate)
  using speed = new ProcessorSpeed()
  await everyMinute(options.minutes, async (minute) => {
    const sent = await load.figures()
    const latencies = { 'acceptance p50, ms': sent.p50Ms, 'acceptance p99, ms': sent.p99Ms }
    const figures = { ...(await world.sampler.sample()), ...latencies, [fixedComputation]: speed.take() }
    samples.push(figures)
    note(progressLine(minute, sent, figures, await world.outside()))
    return true
  })
  return { sent: await load.stop(), samples }
}

interface Idle {
  /** Of a service that has done nothing. */
  fresh: Figures
  /** Of the same service at rest after a minute of load. By then its code is loaded and compiled. */
  warm: Figures
  sent: LoadFigures
  /** The processes before the load. */
  pids: number[]
}

async function idleFigures(world: World, { rate }: { rate: number }, note: Note): Promise<Idle> {
  note('idle figures after the start: two minutes')
  await wait(settleMs)
  const fresh = await minuteOf(world)
  const pids = world.sampler.programPids()
  note('idle figures after a minute of load: up to ten minutes')
  const sent = await sendFor(world, rate)
  await drain(world, note)
  await wait(restMs)
  return { fresh, warm: await minuteOf(world), sent, pids }
}

async function sendFor(world: World, rate: number): Promise<LoadFigures> {
  await using load = await startLoad(world, rate)
  await wait(warmUpMinutes * minuteMs)
  return await load.stop()
}

async function minuteOf({ sampler }: World): Promise<Figures> {
  await sampler.sample()
  await wait(minuteMs)
  return sampler.sample()
}

/** Waits until every accepted email has left the queue and no webhook is due. */
async function drain(world: World, note: Note): Promise<void> {
  let received = -1
  await everyMinute(maxDrainMinutes, async (minute) => {
    const queued = (await world.db.first(finalCounts))?.queued ?? 0
    const now = await world.receiver.count()
    const isDone = queued === 0 && now === received && (await world.outside()).waitingOpens === 0
    received = now
    note(`after the load, ${minute} min: ${queued} queued, ${whole(received)} webhooks received`)
    return !isDone
  })
}

async function waitForIdle(world: World, before: { fresh: Figures; warm: Figures }, note: Note): Promise<IdleAgain> {
  let found: IdleAgain = { afterMinutes: undefined, figures: [] }
  await world.sampler.sample()
  await everyMinute(maxIdleMinutes, async (minute) => {
    found = idleAgain(before, await world.sampler.sample(), minute)
    const busy = found.figures.filter(({ isIdle }) => !isIdle)
    note(`idle, ${minute} min: ${busy.length === 0 ? 'all figures are idle' : busy.map((one) => one.name).join('; ')}`)
    return busy.length > 0
  })
  return found
}

type Note = (text: string) => void

async function soak(options: { minutes: number; rate: number }, note: Note): Promise<SoakResult> {
  await using world = await openWorld(note)
  const { sent: earlier, pids, ...idleBefore } = await idleFigures(world, options, note)
  const { sent, samples } = await runLoad(world, options, note)
  await drain(world, note)
  const idle = await waitForIdle(world, idleBefore, note)
  const counts = await world.db.first(finalCounts)
  const outside = await world.outside()
  return {
    ...options,
    samples,
    idle,
    totals: {
      accepted: earlier.accepted + sent.accepted,
      failedRequests: earlier.failed + sent.failed,
      delivered: outside.messages,
      deferred: outside.deferred,
      queued: counts?.queued ?? 0,
      opened: outside.opened,
      failedOpens: outside.failedOpens,
      recordedOpens: counts?.opens ?? 0,
      webhooks: await world.receiver.count(),
      endedProcesses: pids.filter((pid) => !world.sampler.programPids().includes(pid)).length,
    },
  }
}

function readOptions(): { minutes: number; rate: number; json: boolean } {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '120' },
      rate: { type: 'string', default: '200' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    console.log(usage)
    process.exit(0)
  }
  const [minutes, rate] = [Number(values.minutes), Number(values.rate)]
  if (!Number.isInteger(minutes) || minutes < 4) throw new Error(`--minutes must be a whole number from 4 on: ${values.minutes}`)
  if (!(rate > 0 && rate <= 10_000)) throw new Error(`--rate must be a number of messages a second up to 10000: ${values.rate}`)
  return { minutes, rate, json: values.json }
}

try {
  const { json, ...options } = readOptions()
  const result = await soak(options, (text) => (json ? console.error(text) : console.log(text)))
  const failures = failuresOf(result)
  console.log(json ? JSON.stringify({ ...result, failures }) : `\n${summaryLines(result).join('\n')}`)
  process.exit(failures.length === 0 ? 0 : 1)
} catch (error) {
  console.error(`${(error as Error).message}\n\n${usage}`)
  process.exit(2)
}
