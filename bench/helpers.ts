/** Shared parts of the benchmarks: processes, load, a sink, medians. Bound to loopback, bounded in number and time. */
import { type ChildProcess, fork } from 'node:child_process'
import { request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { ServiceProcess } from '../test/support/spawned-service.ts'
import { type BenchRequest, openAsking } from './client.ts'

const here = (name: string) => new URL(name, import.meta.url).pathname
const maxMs = 120_000

/** A child process that answers messages; ended by its disconnect or `stop`. */
export async function startChild<First>(
  name: string,
  environment: Record<string, string | undefined> = {},
): Promise<{ child: ChildProcess; first: First }> {
  const child = fork(here(name), [], {
    env: { ...process.env, ...environment } as NodeJS.ProcessEnv,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const first = await new Promise<First>((resolve, reject) => {
    child.once('message', (message) => resolve(message as First))
    child.once('exit', (code) => reject(new Error(`${name} ended with ${code}`)))
  })
  return { child, first }
}

/** Sends it a message; resolves with its next, and rejects if it ends first or has ended. */
export const askChild = <Answer>(child: ChildProcess, message: string | object): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const settle = () => {
      child.off('exit', ended)
      child.off('message', answered)
    }
    const ended = () => {
      settle()
      reject(new Error('the process ended before it answered'))
    }
    const answered = (answer: unknown) => {
      settle()
      resolve(answer as Answer)
    }
    child.once('exit', ended)
    child.once('message', answered)
    child.send(message, (error) => {
      if (error) ended()
    })
  })

export const endChild = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once('exit', () => resolve())
    child.kill('SIGTERM')
  })

export interface Sink {
  port: number
  count(): Promise<number>
  reset(): void
  /** The time (performance.now, ms) at which it had this many. */
  until(messages: number): Promise<number>
  stop(): Promise<void>
}

/** `smtp-sink.ts` accepts SMTP, `http-sink.ts` HTTP. */
export async function startSink(name = 'smtp-sink.ts', environment: Record<string, string> = {}): Promise<Sink> {
  const { child, first } = await startChild<{ port: number }>(name, environment)
  const count = async () => (await askChild<{ messages: number }>(child, 'count')).messages
  return {
    port: first.port,
    count,
    reset: () => child.send('reset'),
    async until(messages) {
      const untilMs = performance.now() + maxMs
      while (performance.now() < untilMs) {
        if ((await count()) >= messages) return performance.now()
        await wait(10)
      }
      throw new Error(`the sink has ${await count()} of ${messages} messages after ${maxMs / 1000} s`)
    },
    stop: () => endChild(child),
  }
}

export interface Load {
  port: number
  key: string
  body: Buffer
  connections: number
}

/** The `turn` of evenly spaced requests at this rate. */
export function paced(perSecond: number): (nth: number) => Promise<void> {
  const beganMs = performance.now()
  return async (nth) => {
    const waitMs = beganMs + (nth / perSecond) * 1000 - performance.now()
    if (waitMs > 0) await wait(waitMs)
  }
}

/**
 * Sends requests in a closed loop until `enough` returns true, each after its `turn`; returns the number of responses. Throws at the first
 * unexpected response.
 */
export async function askInLoop(
  { port, connections }: Pick<Load, 'port' | 'connections'>,
  next: (nth: number) => BenchRequest,
  enough: (sent: number) => boolean,
  turn: (nth: number) => Promise<void> = () => Promise.resolve(),
): Promise<number> {
  let sent = 0
  let answered = 0
  const worker = async () => {
    const asking = openAsking(port)
    while (!enough(sent)) {
      const nth = sent++
      await turn(nth)
      await asking.ask(next(nth))
      answered++
    }
    asking.close()
  }
  await Promise.all(Array.from({ length: connections }, worker))
  return answered
}

/** Sends the same email again and again. */
export function load(
  { port, key, body, connections }: Load,
  enough: (sent: number) => boolean,
  turn?: (nth: number) => Promise<void>,
): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'content-length': body.length }
  const email: BenchRequest = { method: 'POST', path: '/v1/emails', headers, body, status: 200 }
  return askInLoop({ port, connections }, () => email, enough, turn)
}

/** About 10 KB of html and text with 12 links, as measured in performance.md. */
export function typicalBody(from: string, to: string): Buffer {
  const paragraph = 'Your order has been packed and leaves our warehouse today; here is what it holds and where it goes. '
  const html = `<html><body>${Array.from({ length: 12 }, (_, n) => `<p>${paragraph.repeat(5)}<a href="https://shop.example.com/orders/${n}?id=${n}">see it</a></p>`).join('\n')}</body></html>`
  return Buffer.from(
    JSON.stringify({
      from,
      to: [to],
      subject: 'Your order 4711 is on its way',
      html,
      text: `${paragraph}\n`.repeat(25),
      tag: 'order',
      metadata: { order_id: '4711' },
    }),
  )
}

/** The status of a GET; undefined without a response. */
const statusOf = (url: string) =>
  new Promise<number | undefined>((resolve) => {
    const attempt = request(url, { agent: false, timeout: 1000 }, (response) => {
      response.resume()
      response.once('end', () => resolve(response.statusCode))
    })
    attempt.once('timeout', () => attempt.destroy())
    attempt.once('error', () => resolve(undefined))
    attempt.end()
  })

/** Milliseconds from now to the first response of status 200. */
export async function timeTo200(url: string): Promise<number> {
  const beganMs = performance.now()
  while ((await statusOf(url)) !== 200) {
    if (performance.now() > beganMs + maxMs) throw new Error(`${url} did not answer within ${maxMs / 1000} s`)
    await wait(3)
  }
  return performance.now() - beganMs
}

/** Starts a stopped service; milliseconds until it is ready. */
export async function timeToReady(service: ServiceProcess): Promise<number> {
  const starting = service.start()
  const [tookMs] = await Promise.all([timeTo200(`${service.url}/readyz`), starting])
  return tookMs
}

export const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number
