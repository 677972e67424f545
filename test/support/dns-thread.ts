/** The test DNS server on a separate thread, so that it responds at once while its test is busy. */
import { once } from 'node:events'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { startTestDns, type TestDns } from './test-dns.ts'

const role = 'DNS for tests'

type ThreadCommand = { set: Parameters<TestDns['set']> } | { fail: Parameters<TestDns['fail']> } | 'answer'

export interface ThreadedDns extends Pick<TestDns, 'address' | 'set' | 'fail'>, AsyncDisposable {
  /** Resolves when all earlier changes are in effect. */
  settled(): Promise<void>
}

export async function startThreadedDns(): Promise<ThreadedDns> {
  const thread = new Worker(new URL(import.meta.url), { workerData: role })
  const [address] = (await once(thread, 'message')) as [string]
  const tell = (told: ThreadCommand) => thread.postMessage(told)
  return {
    address,
    set: (...set) => tell({ set }),
    fail: (...fail) => tell({ fail }),
    async settled() {
      const answer = once(thread, 'message')
      tell('answer')
      await answer
    },
    [Symbol.asyncDispose]: async () => void (await thread.terminate()),
  }
}

if (workerData === role && parentPort) {
  const port = parentPort
  // A receive buffer as large as that of a resolver: on a busy machine, the queries of three processes are answered late but not lost.
  const dns = await startTestDns({}, 2_000_000)
  port.on('message', (told: ThreadCommand) => {
    if (told === 'answer') port.postMessage('settled')
    else if ('set' in told) dns.set(...told.set)
    else dns.fail(...told.fail)
  })
  port.postMessage(dns.address)
}
