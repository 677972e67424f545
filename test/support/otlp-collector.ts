/** An OpenTelemetry collector on 127.0.0.1, which accepts OTLP over HTTP as JSON and keeps the spans. */
import { type Receiver, startReceiver } from './webhook-receiver.ts'

type Value = { stringValue: string } | { intValue: number } | { doubleValue: number } | { boolValue: boolean }

interface Attribute {
  key: string
  value: Value
}

interface WireSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Attribute[]
  events?: { name: string; timeUnixNano: string }[]
  links?: { traceId: string; spanId: string; attributes?: Attribute[] }[]
  status: { code?: number }
}

export interface CollectedSpan {
  traceId: string
  spanId: string
  /** Empty for the first span of a trace. */
  parentSpanId: string
  name: string
  kind: 'server' | 'client' | 'producer' | 'other'
  startMs: number
  durationMs: number
  attributes: Record<string, string | number | boolean>
  events: string[]
  links: { traceId: string; spanId: string }[]
  failed: boolean
  /** Attributes of the process that sent the span. */
  resource: Record<string, string | number | boolean>
}

const kinds = { 2: 'server', 3: 'client', 4: 'producer' } as const
const errorStatus = 2

const attributesOf = (attributes: Attribute[]) => Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

/** Returns every span that the collector received. */
export function spansAt({ received }: Receiver): CollectedSpan[] {
  return received.flatMap(({ body }) => {
    const { resourceSpans } = JSON.parse(body.toString()) as {
      resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: WireSpan[] }[] }[]
    }
    return resourceSpans.flatMap(({ resource, scopeSpans }) =>
      scopeSpans.flatMap(({ spans }) => spans.map((span) => ({ ...spanOf(span), resource: attributesOf(resource.attributes) }))),
    )
  })
}

function spanOf(span: WireSpan): Omit<CollectedSpan, 'resource'> {
  const startMs = Number(span.startTimeUnixNano) / 1e6
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId ?? '',
    name: span.name,
    kind: kinds[span.kind as keyof typeof kinds] ?? 'other',
    startMs,
    durationMs: Number(span.endTimeUnixNano) / 1e6 - startMs,
    attributes: attributesOf(span.attributes),
    events: (span.events ?? []).map(({ name }) => name),
    links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId })),
    failed: span.status.code === errorStatus,
  }
}

export async function startCollector(): Promise<Receiver> {
  const collector = await startReceiver()
  collector.answer = (response) => response.setHeader('content-type', 'application/json').end('{}')
  return collector
}
