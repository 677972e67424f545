/**
 * Webhooks: the rate at which an event log reaches a sink, signed in both ways and recorded. Compared with undici posting the same bodies
 * with the same concurrency, unsigned and signed.
 */
import { endChild, startChild, startSink } from './helpers.ts'

/** Each gets every event. */
export const webhooks = 4
/** The concurrency of one webhook, for each. */
export const connections = webhooks * 8
const events = 4000
const warmUpRequests = 2000

export const eventsOf = (environment: Record<string, string | undefined>) => Number(environment['EVENTS'])

/** About a kilobyte, like the payload of a delivered message. */
export const payloadOf = (): Record<string, unknown> => {
  const message = {
    id: 9301,
    token: '0ZZ1b2Xk7Qm3Ws8Rt4Yv9p',
    direction: 'outgoing',
    message_id: '0ZZ1b2Xk7Qm3Ws8Rt4Yv9p@mail.example.com',
    to: 'ann@example.org',
    from: 'shop@mail.example.com',
    subject: 'Your order 4711 is on its way',
    timestamp: 1_795_000_000,
    spam_status: 'NotChecked',
    tag: 'order',
    metadata: { order_id: '4711', customer: 'c-20391', note: 'x'.repeat(300) },
  }
  const details = 'Message for ann@example.org accepted by 203.0.113.9:25 (mx.example.org)'
  const output = '250 2.0.0 Ok: queued as 4bXq2p1M'
  return {
    message,
    metadata: message.metadata,
    status: 'Sent',
    details,
    output,
    sent_with_ssl: true,
    timestamp: 1_795_000_002,
    time: 0.418,
  }
}

export const bareBody = (): Buffer =>
  Buffer.from(
    JSON.stringify({
      event: 'MessageSent',
      timestamp: 1_795_000_002.123,
      uuid: '0b2f6a0e-5d0c-5b0e-9a53-0f3d3c1f8a11',
      tenant_id: 'a'.repeat(25),
      payload: payloadOf(),
    }),
  )

type Rates = (ours: () => Promise<number>, against: () => Promise<number>) => Promise<[number, number][]>

/** Requests per second, Postrider's and undici's, in pairs; `environment` lets the process reach its database. */
export async function webhookRates(environment: Record<string, string>, isSigned: boolean, interleave: Rates): Promise<[number, number][]> {
  const sink = await startSink('http-sink.ts')
  const requests = events * webhooks
  const rateOf = async (script: string, given: Record<string, string>) => {
    sink.reset()
    const { child } = await startChild(script, { ...environment, ...given, SINK_PORT: String(sink.port) })
    await sink.until(warmUpRequests)
    const beganMs = performance.now()
    const had = await sink.count()
    const endMs = await sink.until(requests)
    await endChild(child)
    return (requests - had) / ((endMs - beganMs) / 1000)
  }
  const pairs = await interleave(
    () => rateOf('send-webhooks.ts', { EVENTS: String(events) }),
    () => rateOf('webhook-baseline.ts', { REQUESTS: String(requests), SIGNED: isSigned ? '1' : '0' }),
  )
  await sink.stop()
  return pairs
}
