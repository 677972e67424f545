/** Settings of traces and logs. */
import { choiceFrom, setting } from './setting.ts'

export const observabilitySettings = {
  // Platforms set these variables for all their programs: invalid values are logged by traces.ts and do not stop mail.
  tracesBase: setting(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'none',
    'base URL of an OpenTelemetry collector (OTLP over HTTP); traces go to `/v1/traces` below it (docs/tracing.md)',
    (v) => v,
  ),
  tracesUrl: setting('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'none', 'full URL for traces, instead of OTEL_EXPORTER_OTLP_ENDPOINT', (v) => v),
  tracesHeaders: setting(
    'OTEL_EXPORTER_OTLP_HEADERS',
    'none',
    'headers sent with traces: `name=value,name=value`, values percent-encoded',
    (v) => v,
  ),
  tracesSampler: setting(
    'OTEL_TRACES_SAMPLER',
    'parentbased_always_on',
    'trace sampler: `always_on`, `always_off` or `traceidratio`, each also with the prefix `parentbased_`',
    (v) => v ?? 'parentbased_always_on',
  ),
  tracesShare: setting('OTEL_TRACES_SAMPLER_ARG', '1', 'ratio of traces that a `traceidratio` sampler sends, from 0 to 1', (v) => v ?? '1'),
  tracesExporter: setting('OTEL_TRACES_EXPORTER', 'otlp', '`none` turns traces off', (v) => v ?? 'otlp'),
  tracesDisabled: setting('OTEL_SDK_DISABLED', 'false', '`true` turns traces off', (v) => v?.toLowerCase() === 'true'),
  logLevel: setting('POSTRIDER_LOG_LEVEL', 'info', '`debug`, `info`, `warn`, `error` or `silent`', (v) =>
    choiceFrom(v, ['debug', 'info', 'warn', 'error', 'silent'], 'info'),
  ),
  logFormat: setting('POSTRIDER_LOG_FORMAT', '`text` on a terminal, otherwise `json`', '`json` or `text`: form of the log lines', (v) =>
    v === undefined ? undefined : choiceFrom(v, ['json', 'text'], 'json'),
  ),
} as const
