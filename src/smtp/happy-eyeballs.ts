/**
 * Connects to the first of several addresses that answers, without waiting for slow ones (Happy Eyeballs, RFC 8305): the next is tried
 * after a failure or a short silence. Promises: never rejects; a socket that is not handed over is closed.
 */
import { connect as connectTcp, type Socket } from 'node:net'
import type { Clock } from '#base'
import { openTranscript } from './transcript.ts'
import { type Dial, defaultLimits, type Failure, type Peer } from './types.ts'

/** The address to connect to, and the source address. */
export interface Target {
  peer: Peer
  localAddress?: string | undefined
}

export type DialResult<T extends Target> = { target: T; socket: Socket } | { target: T; failure: Failure }

/** RFC 8305 section 5: the recommended Connection Attempt Delay. */
const nextAfterMs = 250

interface Attempt {
  answer: Promise<Socket | Failure>
  stop(): void
}

/**
 * Yields the result of each target, in the order in which it is known. A caller that takes a socket and asks for more could not use it:
 * the attempts cancelled in its favour then start again.
 */
export async function* happyEyeballs<T extends Target>(
  targets: readonly T[],
  { clock, connectMs = defaultLimits.connectMs, dial = dialTcp }: { clock: Clock; connectMs?: number | undefined; dial?: Dial | undefined },
): AsyncGenerator<DialResult<T>> {
  const waiting = [...targets]
  const trying = new Map<T, Attempt>()
  const answers: { target: T; answer: Socket | Failure }[] = []
  let wake = () => {}

  const start = () => {
    const target = waiting.shift()
    if (!target) return
    const attempt = attemptAt(target, clock, connectMs, dial)
    trying.set(target, attempt)
    void attempt.answer.then((answer) => {
      if (!trying.delete(target)) return
      answers.push({ target, answer })
      wake()
    })
  }
  const stopAll = () => {
    for (const attempt of trying.values()) attempt.stop()
    for (const { answer } of answers) if (isSocket(answer)) answer.destroy()
    const stopped = [...trying.keys(), ...answers.filter(({ answer }) => isSocket(answer)).map(({ target }) => target)]
    trying.clear()
    return stopped
  }

  try {
    while (answers.length + trying.size + waiting.length > 0) {
      if (trying.size === 0 && answers.length === 0) start()
      while (answers.length === 0) {
        let cancel = () => {}
        const isAnswered = await new Promise<boolean>((resolve) => {
          wake = () => resolve(true)
          if (waiting.length > 0) cancel = clock.after(nextAfterMs, () => resolve(false))
        })
        cancel()
        if (!isAnswered) start()
      }
      const { target, answer } = answers.shift() as (typeof answers)[number]
      if (isSocket(answer)) {
        waiting.unshift(...stopAll())
        for (let at = answers.length - 1; at >= 0; at--) if (isSocket(answers[at]?.answer)) answers.splice(at, 1)
        yield { target, socket: answer }
      } else {
        start()
        yield { target, failure: answer }
      }
    }
  } finally {
    stopAll()
  }
}

const isSocket = (answer: Socket | Failure | undefined): answer is Socket => answer !== undefined && 'destroy' in answer

const dialTcp: Dial = ({ host, port, localAddress }) =>
  connectTcp({ host, port, noDelay: true, ...(localAddress === undefined ? {} : { localAddress }) })

function attemptAt({ peer, localAddress }: Target, clock: Clock, connectMs: number, dial: Dial): Attempt {
  const { address, port } = peer
  const socket = dial({ host: address, port, localAddress })
  const answer = new Promise<Socket | Failure>((resolve) => {
    const fail = (kind: Failure['kind'], message: string) => {
      cancel()
      socket.destroy()
      const transcript = openTranscript()
      transcript.note(connectingTo({ peer, localAddress }))
      transcript.note(message)
      resolve({ stage: 'connect', kind, message, transcript: transcript.text })
    }
    const cancel = clock.after(connectMs, () => fail('timeout', `connection to ${address} port ${port} timed out`))
    // Stays attached: an error between two owners of the socket must not crash the process.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.syscall === 'bind') fail('aborted', `${localAddress} is not an address of this machine`)
      else
        fail(
          error.code === 'ETIMEDOUT' ? 'timeout' : 'refused',
          `cannot connect to ${address} port ${port}: ${error.code ?? error.message}`,
        )
    })
    socket.once('close', () => cancel())
    socket.once('connect', () => {
      cancel()
      resolve(socket)
    })
  })
  return { answer, stop: () => socket.destroy() }
}

export const connectingTo = ({ peer, localAddress }: Target) =>
  `connecting to ${peer.host} [${peer.address}]:${peer.port}${localAddress === undefined ? '' : ` from ${localAddress}`}`
