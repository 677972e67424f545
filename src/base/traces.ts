/**
 * Traces, for whoever has an OpenTelemetry collector: what has ended is told here, and leaves in batches. Off unless a collector is
 * named; then there is nothing to call, and nothing of OpenTelemetry is loaded.
 */
import { readFileSync } from 'node:fs'
import { ConfigError } from './config.ts'
import type { Traces, TracesConfig, TracesDeps } from './span.ts'

/** Undefined when no collector is named. */
export async function openTraces(config: TracesConfig, deps: TracesDeps): Promise<Traces | undefined> {
  if (config.tracesBase === undefined && config.tracesUrl === undefined) return undefined
  const { openExport } = await import('./traces-export.ts').catch((error: unknown) => {
    if ((error as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new ConfigError(`traces need packages that are not installed here; run: npm install --no-save --save-prod ${packages()}`)
  })
  return openExport(config, deps)
}

/** As the tests have them. */
function packages(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    devDependencies: Record<string, string>
  }
  return Object.entries(manifest.devDependencies)
    .filter(([name]) => name.startsWith('@opentelemetry/'))
    .map((one) => one.join('@'))
    .join(' ')
}
