/**
 * Exports spans through OpenTelemetry's SDK as OTLP in JSON. Loaded only if tracing is configured, because its packages are large and
 * optional. The exporter reads certificates, compression and timeout from the environment. Address and headers may hold a secret, so they
 * were removed there and come from the settings.
 */
import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  type IdGenerator,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { pause } from './clock.ts'
import type { Log } from './log.ts'
import { type EndedSpan, parseTraceparent, type Traces, type TracesConfig, type TracesDeps, traceIdOf } from './trace-context.ts'

/** Most spans queued for export; further ones are dropped. */
const maxWaiting = 2048
const sendEveryMs = 5000
const stopWithinMs = 2000
/** Interval between warnings while the collector is unavailable. */
const complainEveryMs = 60_000
/** Longest error in a warning, because it may contain the collector's whole response. */
const maxWhyLength = 200
/** Most emails linked to one request. A batch may have a thousand, half of the export queue. */
const maxLinks = 100

/** ExportResultCode.SUCCESS, from a separate package of the SDK. */
const exported = 0

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT }

export function openExport(config: TracesConfig, deps: TracesDeps): Traces {
  const { clock, log, random, version } = deps
  const hex = (octets: number) => Buffer.from(random(new Uint8Array(octets))).toString('hex')
  /** The SDK asks for an id synchronously while it creates a span. */
  let nextTraceId: string | undefined
  const idGenerator = { generateTraceId: () => nextTraceId ?? hex(16), generateSpanId: () => hex(8) }
  const provider = providerOf(config, deps, idGenerator)
  const tracer = provider.getTracer('postrider', version)

  const start = (name: string, kind: SpanKind, startTime: number, { emailId, traceparent, attributes }: Partial<EndedSpan>) => {
    const parent = emailId == null && traceparent !== undefined ? parseTraceparent(traceparent) : undefined
    const context = parent ? trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true }) : ROOT_CONTEXT
    nextTraceId = emailId == null ? undefined : traceIdOf(emailId)
    const known = Object.entries({ 'postrider.email.id': emailId, ...attributes }).filter(([, value]) => value != null)
    const span = tracer.startSpan(name, { kind, startTime, attributes: Object.fromEntries(known) as Attributes }, context)
    nextTraceId = undefined
    return span
  }

  const recordEnded = (ended: EndedSpan) => {
    const endMs = clock.nowMs()
    const startMs = endMs - ended.durationMs
    const span = start(ended.name, kinds[ended.kind], startMs, ended)
    for (const emailId of ended.acceptedEmailIds?.slice(0, maxLinks) ?? []) {
      const first = start('email accepted', SpanKind.PRODUCER, endMs, { emailId })
      first.addLink({ context: span.spanContext() })
      span.addLink({ context: first.spanContext(), attributes: { 'postrider.email.id': emailId } })
      first.end(endMs)
    }
    for (const [name, afterMs] of Object.entries(ended.events ?? {})) span.addEvent(name, startMs + afterMs)
    if (ended.error !== undefined) {
      span.setAttribute('error.type', ended.error)
      span.setStatus({ code: SpanStatusCode.ERROR })
    }
    span.end(endMs)
  }

  return {
    note(ended) {
      try {
        recordEnded(ended)
      } catch (error) {
        log.error({ err: error }, 'failed to record a span')
      }
    },
    async stop() {
      const sent = new AbortController()
      const sending = provider
        .shutdown()
        .catch((error: unknown) => log.warn({ err: error }, 'failed to send traces'))
        .finally(() => sent.abort())
      await Promise.race([sending, pause(clock, stopWithinMs, sent.signal)])
    },
  }
}

/** Batches the spans, samples them as configured and sends them to the collector. */
const providerOf = (config: TracesConfig, deps: TracesDeps, idGenerator: IdGenerator) =>
  new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'postrider', 'service.version': deps.version, 'postrider.role': deps.role }))
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })),
    sampler: samplerOf(config, deps.log),
    idGenerator,
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: forgiving(exporterOf(config), deps),
        maxQueueSize: maxWaiting,
        scheduledDelayMillis: sendEveryMs,
      }),
    ],
  })

const samplerForm = /^(parentbased_)?(always_on|always_off|traceidratio)$/

/** Returns badly encoded text unchanged, because a tracing setting must not stop mail. */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Headers in W3C Baggage form: name=value pairs separated by commas, values percent-encoded. */
function exporterOf({ tracesUrl, tracesBase, tracesHeaders }: TracesConfig): OTLPTraceExporter {
  const pairs = (tracesHeaders ?? '').split(',').map((pair) => pair.split(/=(.*)/s, 2).map((part) => percentDecoded(part.trim())))
  return new OTLPTraceExporter({
    url: tracesUrl ?? `${tracesBase?.replace(/\/$/, '')}/v1/traces`,
    headers: Object.fromEntries(pairs.filter(([name = '', value]) => name !== '' && value !== undefined)) as Record<string, string>,
  })
}

/** An unknown sampler is logged and replaced by the default, as OpenTelemetry specifies. */
function samplerOf({ tracesSampler, tracesShare }: TracesConfig, log: Log): Sampler {
  const [isKnown, parent, name] = samplerForm.exec(tracesSampler) ?? []
  const share = /^\d*\.?\d+$/.test(tracesShare) ? Number(tracesShare) : Number.NaN
  if (isKnown === undefined) log.warn(`unknown OTEL_TRACES_SAMPLER; using parentbased_always_on`)
  else if (name === 'traceidratio' && !(share <= 1)) log.warn('OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1; using 1')
  const root =
    name === 'always_off'
      ? new AlwaysOffSampler()
      : name === 'traceidratio' && share <= 1
        ? new TraceIdRatioBasedSampler(share)
        : new AlwaysOnSampler()
  return isKnown === undefined || parent ? new ParentBasedSampler({ root }) : root
}

/** Logs failed exports at intervals and drops their spans; the SDK would not report them. */
function forgiving(exporter: SpanExporter, { clock, log }: Pick<TracesDeps, 'clock' | 'log'>): SpanExporter {
  let lost = 0
  let complainedMs = Number.NEGATIVE_INFINITY
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.code !== exported) {
          lost += spans.length
          if (clock.monotonicMs() - complainedMs >= complainEveryMs) {
            const why = result.error?.message.slice(0, maxWhyLength)
            log.warn({ why, spans: lost }, 'failed to send traces to the collector; traces lost')
            complainedMs = clock.monotonicMs()
            lost = 0
          }
        }
        done({ code: exported })
      })
    },
    shutdown: () => exporter.shutdown(),
  }
}
