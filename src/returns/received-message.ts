/** A returned message, which may have several recipients: read once and verified once. */
import { type Clock, networkOf, pause } from '#base'
import { type DkimVerdict, type Unjudged, verifySignatures } from '#dkim'
import type { Resolver } from '#net'
import type { Reading } from './read-returned-mail.ts'
import type { Read } from './report-reader.ts'

export interface ReceivedMessageDeps {
  clock: Clock
  /** For the DKIM keys of signed reports. */
  resolver: Pick<Resolver, 'txt'>
  read: Read
}

const maxVerifyMs = 10_000

export interface ReportSender {
  /** Of the client; empty without a connection. */
  address: string
  /** The envelope sender is the null reverse-path. */
  hasNullSender: boolean
}

export class ReceivedMessage {
  readonly #deps: ReceivedMessageDeps
  readonly #octets: Buffer
  readonly #sender: ReportSender
  #reading: Promise<Reading> | undefined
  #verdict: Promise<DkimVerdict> | undefined

  constructor(deps: ReceivedMessageDeps, octets: Buffer, sender: ReportSender) {
    this.#deps = deps
    this.#octets = octets
    this.#sender = sender
  }

  /** Rejects if the message cannot be read now. */
  reading(): Promise<Reading> {
    const { address, hasNullSender } = this.#sender
    this.#reading ??= this.#deps.read(this.#octets, { atMs: this.#deps.clock.nowMs(), hasNullSender, network: networkOf(address) })
    return this.#reading
  }

  dkim(signatures: Unjudged): Promise<DkimVerdict> {
    this.#verdict ??= verifyInTime(this.#deps, signatures)
    return this.#verdict
  }
}

/** Limited in time, because the reporting server waits. */
export async function verifyInTime({ clock, resolver }: Omit<ReceivedMessageDeps, 'read'>, signatures: Unjudged): Promise<DkimVerdict> {
  const findTxt = async (name: string) => {
    const answer = await resolver.txt(name)
    return answer.kind === 'found' ? answer.value : []
  }
  const done = new AbortController()
  const inTime = pause(clock, maxVerifyMs, done.signal).then((): DkimVerdict => 'fail')
  const verdict = await Promise.race([verifySignatures(signatures, findTxt), inTime])
  done.abort()
  return verdict
}
