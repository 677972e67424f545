/**
 * Vendors' SDKs that send at once and repeat each request until it is answered, while the service behind them fails. Each message has a recipient
 * of its own, so that the mail and the database show a lost or a repeated one.
 */
import { SendEmailCommand as SendEmail1Command } from '@aws-sdk/client-ses'
import { SendEmailCommand } from '@aws-sdk/client-sesv2'
import { type Clock, pause } from '#base'
import type { SignedBy } from './aws-signature.ts'
import { postmarkClient, resendClient, sendgridClient, sendgridMailer, sesClient, sesv2Client } from './sdk-clients.ts'

/** Sends one message and returns its id; rejects without an answer. */
type Send = (to: string) => Promise<string>
export type SdkName = 'resend' | 'postmark' | 'sendgrid' | 'sesv2' | 'ses'

export interface SdkLoadOptions {
  clock: Clock
  url: string
  /** A live key. */
  key: string
  /** An address of a sending domain. */
  from: string
  lanesPerSdk: number
  /** The time between an answer and the next message of the same lane. */
  gapMs: number
}

interface Accepted {
  name: SdkName
  id: string
  tries: number
}

const askEveryMs = 20
const readyWithinMs = 120_000
const maxTries = 50
const [subject, text] = ['Hello', 'Hi']

export class SdkLoad {
  /** By recipient. */
  readonly accepted = new Map<string, Accepted>()
  readonly sdks: Readonly<Record<SdkName, Send>>
  readonly #options: SdkLoadOptions
  #lanes: Promise<void>[] = []
  #isPaused = true
  #isEnded = false
  #number = 0

  private constructor(options: SdkLoadOptions, signing: SignedBy) {
    this.#options = options
    this.sdks = openSdks(options, signing)
  }

  /** Makes a key for SES. */
  static async open(options: SdkLoadOptions): Promise<SdkLoad> {
    const response = await fetch(`${options.url}/v1/credentials`, {
      method: 'POST',
      headers: { authorization: `Bearer ${options.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'ses', type: 'api', mode: 'live', format: 'ses' }),
    })
    const { data } = (await response.json()) as { data: SignedBy }
    return new SdkLoad(options, data)
  }

  start(): void {
    this.#isPaused = false
    const each = Object.entries(this.sdks) as [SdkName, Send][]
    this.#lanes = each.flatMap(([name, send]) => Array.from({ length: this.#options.lanesPerSdk }, () => this.#run(name, send)))
    // `pause` reports a failure.
    for (const lane of this.#lanes) lane.catch(() => undefined)
  }

  /** Resolves when every request is answered; rejects if one is refused again and again. */
  async pause(): Promise<void> {
    this.#isPaused = true
    await Promise.all(this.#lanes)
    this.#lanes = []
  }

  /** Ends the lanes without an answer to their requests. */
  end(): void {
    this.#isPaused = true
    this.#isEnded = true
  }

  forget(): void {
    this.accepted.clear()
  }

  /** Recipients whose message did not arrive. */
  lost(arrived: { has(recipient: string): boolean }): string[] {
    return [...this.accepted.keys()].filter((to) => !arrived.has(to))
  }

  /** Sentences about messages that are not stored, or more often than their requests allow: once under an idempotency key. */
  wrong(idsOf: (recipient: string) => readonly string[]): string[] {
    return [...this.accepted].flatMap(([to, { name, id, tries }]) => {
      const ids = idsOf(to)
      const most = name === 'resend' ? 1 : tries
      if (ids.includes(id) && ids.length <= most) return []
      return [`${name}: ${to}, answered after ${tries} requests with ${id}, is stored as ${ids.join(', ') || 'nothing'}`]
    })
  }

  async #run(name: SdkName, send: Send): Promise<void> {
    const { clock, gapMs } = this.#options
    while (!this.#isPaused) {
      const to = `${name}-${this.#number++}@one.example`
      this.accepted.set(to, { name, ...(await this.#untilAnswered(send, to)) })
      if (gapMs > 0) await pause(clock, gapMs)
    }
  }

  async #untilAnswered(send: Send, to: string): Promise<{ id: string; tries: number }> {
    for (let tries = 1; ; tries++) {
      try {
        return { id: await send(to), tries }
      } catch (error) {
        if (tries === maxTries || this.#isEnded) throw error
      }
      await this.#untilReady()
    }
  }

  async #untilReady(): Promise<void> {
    const { clock, url } = this.#options
    const untilMs = clock.monotonicMs() + readyWithinMs
    const isReady = () =>
      fetch(`${url}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      )
    while (!(await isReady())) {
      if (clock.monotonicMs() > untilMs || this.#isEnded) throw new Error(`the service was not ready within ${readyWithinMs / 1000} s`)
      await pause(clock, askEveryMs)
    }
  }
}

function openSdks({ url, key, from }: SdkLoadOptions, signing: SignedBy): SdkLoad['sdks'] {
  const [resend, postmark] = [resendClient(key, url), postmarkClient(key, url)]
  const mailer = sendgridMailer(sendgridClient(key, url))
  const [two, one] = [sesv2Client(signing, url), sesClient(signing, url)]
  const Body = { Text: { Data: text } }
  const Subject = { Data: subject }
  return {
    async resend(to) {
      const { data, error } = await resend.emails.send({ from, to, subject, text }, { idempotencyKey: `welcome/${to}` })
      if (error) throw new Error(error.message)
      return data.id
    },
    postmark: async (To) => (await postmark.sendEmail({ From: from, To, Subject: subject, TextBody: text })).MessageID,
    async sendgrid(to) {
      const [{ headers }] = await mailer.send({ from, to, subject, text })
      return String((headers as Record<string, unknown>)['x-message-id'])
    },
    async sesv2(to) {
      const Content = { Simple: { Subject, Body } }
      const sent = await two.send(new SendEmailCommand({ FromEmailAddress: from, Destination: { ToAddresses: [to] }, Content }))
      return String(sent.MessageId)
    },
    async ses(to) {
      const sent = await one.send(new SendEmail1Command({ Source: from, Destination: { ToAddresses: [to] }, Message: { Subject, Body } }))
      return String(sent.MessageId)
    },
  }
}
