import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from './clock.ts'
import { openTaskProcess, openThread, TaskProcessEnded, TookTooLong } from './worker-threads.ts'

/** A thread that runs this code. */
const fileOf = (code: string) => new URL(`data:text/javascript,${encodeURIComponent(code)}`)
const served = (work: string) =>
  fileOf(`import { parentPort } from 'node:worker_threads'
    const work = ${work}
    parentPort.on('message', (task) => {
      try { parentPort.postMessage({ result: work(task) }) } catch (error) { parentPort.postMessage({ error: error.message }) }
    })
    parentPort.postMessage('ready')`)
const bounds = { clock: systemClock, deadlineMs: 60_000, idleMs: 100 }

describe('a thread', () => {
  test('answers its callers in turns, however many tasks one of them has', async () => {
    const thread = openThread<string, string>(served('(task) => task'), bounds)
    const order: string[] = []
    const asked = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map(async (task) => void order.push(await thread.run(task.slice(0, 1), task)))
    await Promise.all(asked)
    expect(order).toEqual(['a1', 'b1', 'a2', 'c1', 'b2', 'a3'].sort((one, other) => order.indexOf(one) - order.indexOf(other)))
    expect(order.indexOf('b1')).toBeLessThan(order.indexOf('a3'))
    expect(order.indexOf('c1')).toBeLessThan(order.indexOf('a3'))
  })

  test('that overruns its deadline ends, and the next task has a new one', async () => {
    const thread = openThread<string, string>(served("(task) => { while (task === 'endless') {} return task }"), {
      ...bounds,
      deadlineMs: 3000,
    })
    const endless = thread.run('a', 'endless')
    const next = thread.run('b', 'next')
    await expect(endless).rejects.toBeInstanceOf(TookTooLong)
    expect(await next).toBe('next')
  })

  test('that fails or ends fails its task alone', async () => {
    const work = "(task) => { if (task === 'throw') throw new Error('thrown'); if (task === 'end') process.exit(3); return task }"
    const thread = openThread<string, string>(served(work), bounds)
    const asked = ['throw', 'end', 'fine'].map((task) => thread.run('a', task))
    const settled = await Promise.allSettled(asked)
    expect(settled.map((one) => (one.status === 'fulfilled' ? one.value : String(one.reason)))).toEqual([
      'Error: thrown',
      'Error: a thread exited with code 3',
      'fine',
    ])
  })

  test('that idled and ended is started again', async () => {
    const thread = openThread<number, number>(served('(task) => process.pid + task'), bounds)
    await thread.run('a', 1)
    await new Promise<void>((resolve) => void systemClock.after(500, resolve))
    expect(await thread.run('a', 1)).toBe(process.pid + 1)
  })
  test('has no setting and no secret, and no more heap than it may', async () => {
    const seen = openThread<string, number>(served('() => Object.keys(process.env).length'), bounds)
    expect(await seen.run('a', '')).toBe(0)
    const filling = "(task) => { const held = []; while (task === 'fill') held.push({ at: held.length }); return task }"
    const thread = openThread<string, string>(served(filling), { ...bounds, maxHeapMebibytes: 32 })
    await expect(thread.run('a', 'fill')).rejects.toThrow(/memory|ended/)
    expect(await thread.run('a', 'next')).toBe('next')
  }, 60_000)

  test('that is stopped rejects running, waiting and new tasks', async () => {
    const thread = openThread<string, string>(served("(task) => { while (task === 'endless') {} return task }"), bounds)
    const asked = ['endless', 'waits'].map((task) => thread.run('a', task))
    const settled = Promise.allSettled(asked)
    thread.stop()
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await expect(thread.run('a', 'late')).rejects.toThrow('stopped')
  })

  test('takes a task out of a long queue as quickly as out of a short one', async () => {
    const costOf = async (tasks: number) => {
      const thread = openThread<number, number>(served('(task) => task'), bounds)
      await thread.run('a', 0)
      const before = process.cpuUsage()
      const asked = Array.from({ length: tasks }, (_, at) => thread.run('a', at))
      await Promise.all(asked)
      const { user, system } = process.cpuUsage(before)
      return (user + system) / tasks
    }
    await costOf(1_000)
    const short = await costOf(2_000)
    expect(await costOf(40_000)).toBeLessThan(4 * short)
  }, 120_000)
})

/** A module file with this code. */
function moduleOf(code: string): URL {
  const folder = mkdtempSync(join(tmpdir(), 'tasks-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'tasks.mjs')
  writeFileSync(file, code)
  return pathToFileURL(file)
}

test('a child process that fills its heap fails its task alone, and the next task has a new one', async () => {
  const file = moduleOf(
    `process.on('message', (task) => {
      const held = []
      while (task === 'fill') held.push('a'.repeat(1000) + held.length)
      process.send({ result: [process.pid, Object.keys(process.env).length] })
    })
    process.send('ready')`,
  )
  const child = openTaskProcess<string, number[]>(file, { ...bounds, idleMs: 60_000, maxHeapMebibytes: 32 })
  onTestFinished(() => child.stop())
  const filling = child.run('a', 'fill')
  const next = child.run('a', 'next')
  await expect(filling).rejects.toBeInstanceOf(TaskProcessEnded)
  const [pid, variables] = await next
  expect([pid === process.pid, variables]).toEqual([false, 0])
}, 60_000)

const killable = `process.on('message', (task) => {
    if (task === 'kill') process.kill(process.pid, 'SIGKILL')
    else if (task === 'exit') process.exit(3)
    else process.send({ result: process.pid })
  })
  process.send('ready')`

test('a child process that is killed while idle does not fail the next task', async () => {
  const child = openTaskProcess<string, number>(moduleOf(killable), { ...bounds, idleMs: 60_000 })
  onTestFinished(() => child.stop())
  const killed = await child.run('a', 'first')
  process.kill(killed, 'SIGKILL')
  expect(await child.run('a', 'next')).not.toBe(killed)
}, 60_000)

test.each([
  ['kill', 'a child process ended with SIGKILL'],
  ['exit', 'a child process ended with code 3'],
])(
  'a task that ends its child process twice by %s fails, and is not said to need too much',
  async (task, message) => {
    const child = openTaskProcess<string, number>(moduleOf(killable), { ...bounds, idleMs: 60_000 })
    onTestFinished(() => child.stop())
    const failing = child.run('a', task).catch((error: unknown) => error)
    const next = child.run('a', 'next')
    const error = await failing
    expect(error).not.toBeInstanceOf(TaskProcessEnded)
    expect(String(error)).toBe(`Error: ${message}`)
    expect(await next).toBeGreaterThan(0)
  },
  60_000,
)

test('a child process that cannot be started fails each task', async () => {
  // Only a file can be started, so the start throws.
  const child = openTaskProcess<string, string>(new URL('data:text/javascript,'), bounds)
  onTestFinished(() => child.stop())
  const settled = await Promise.allSettled(['first', 'second', 'third'].map((task) => child.run('a', task)))
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
})
