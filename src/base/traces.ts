/**
 * OpenTelemetry traces: collects finished spans and exports them in batches. Off unless a collector is configured; then no OpenTelemetry
 * package is loaded and there is no cost.
 */
import { readFileSync } from 'node:fs'
import type { Traces, TracesConfig, TracesDeps } from './trace-context.ts'

/** Undefined if tracing is not configured or not available; the latter is logged and does not stop mail. */
export async function openTraces(config: TracesConfig, deps: TracesDeps): Promise<Traces | undefined> {
  const { tracesBase, tracesUrl, tracesExporter, tracesDisabled } = config
  const url = tracesUrl ?? tracesBase
  if (url === undefined || tracesDisabled || tracesExporter === 'none') return undefined
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    deps.log.warn('traces are off: OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not an http or https URL')
    return undefined
  }
  try {
    const { openExport } = await import('./traces-export.ts')
    return openExport(config, deps)
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    deps.log.warn(`traces are off: required packages are not installed. Run: npm install --no-save --save-prod ${packages()}`)
    return undefined
  }
}

/** The versions that the tests use. */
function packages(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    devDependencies: Record<string, string>
  }
  return Object.entries(manifest.devDependencies)
    .filter(([name]) => name.startsWith('@opentelemetry/'))
    .map((one) => one.join('@'))
    .join(' ')
}
