/** Settings with secrets: left out of the settings that the dashboard shows, and of the environment that child processes start with. */
import { settings } from './config.ts'

export interface ShownSetting {
  name: string
  means: string
  default: string
  /** null: default. A secret setting is only reported as set. */
  value: string | null
}

/** Settings that are secrets, and those that may contain one: URLs, and blocklists with the key of a registered user. */
const secretSettings = new Set([
  'DATABASE_URL',
  'POSTRIDER_RELAY',
  'POSTRIDER_DNS_UPDATE',
  'POSTRIDER_BLOCKLISTS',
  'POSTRIDER_SECRET',
  'POSTRIDER_SECRET_NEW',
  'POSTRIDER_METRICS_TOKEN',
  'POSTRIDER_OIDC_CLIENT_SECRET',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
])

/** The settings in force, without secrets. */
export const shownSettings = (environment: Record<string, string | undefined>): ShownSetting[] =>
  Object.values(settings).map(({ env, default: usual, means }) => ({
    name: env,
    means,
    default: usual,
    value: environment[env] ? (secretSettings.has(env) ? 'set' : environment[env]) : null,
  }))

/** Variables with secrets. Every process of the same user can read another's initial environment, so child processes start without them. */
const isSecretSetting = (name: string) => secretSettings.has(name) || /^(POSTRIDER_KEY|PGPASSWORD|PGPASSFILE)$/.test(name)

type Environment = Record<string, string | undefined>

/** Returns a copy of the environment and removes the secrets from the original, so that child processes do not inherit them. */
export function takeEnvironment(environment: Environment): Environment {
  const taken = { ...environment }
  for (const name of Object.keys(taken)) if (secretSettings.has(name)) delete environment[name]
  return taken
}

/** The environment that a child process starts with, and the part it gets through a pipe. */
export function partedEnvironment(environment: Environment): { open: Environment; secret: Environment } {
  const parted = (isSecret: boolean) =>
    Object.fromEntries(Object.entries(environment).filter(([name]) => isSecretSetting(name) === isSecret))
  return { open: parted(false), secret: parted(true) }
}
