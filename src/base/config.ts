/**
 * Reads all settings from the environment, and refuses those that do not fit together. The table of each area is in its own file; all of
 * them also generate `docs/generated/config.md` and `postrider serve --help`.
 */

import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { apiSettings } from './api-settings.ts'
import { deliverySettings } from './delivery-settings.ts'
import { installationSettings } from './installation-settings.ts'
import { limitSettings } from './limit-settings.ts'
import { listenerSettings } from './listener-settings.ts'
import { observabilitySettings } from './observability-settings.ts'
import { openIdProblem, openIdSettings } from './openid-settings.ts'
import { senderSettings } from './sender-settings.ts'
import { ConfigError } from './setting.ts'

/** In the order of the generated page. */
export const settings = {
  ...installationSettings,
  ...listenerSettings,
  ...deliverySettings,
  ...senderSettings,
  ...apiSettings,
  ...limitSettings,
  ...openIdSettings,
  ...observabilitySettings,
} as const

type Settings = { -readonly [Name in keyof typeof settings]: ReturnType<(typeof settings)[Name]['read']> }

export interface Config
  extends Omit<
    Settings,
    'databaseUrlFile' | 'secretFile' | 'newSecretFile' | 'oidcClientSecretFile' | 'sandboxSender' | 'publicUrl' | 'smtpHost'
  > {
  sandboxSender: string
  smtpHost: string
  publicUrl: string
}

function readSecretFile(env: string, file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new ConfigError(`${env}: ${(error as Error).message}`)
  }
  if (text === '') throw new ConfigError(`${env}: ${file} is empty`)
  return text
}

/** Reads all settings; throws ConfigError with the variable's name and the problem. */
export function readConfig(environment: Record<string, string | undefined>): Config {
  const read = Object.fromEntries(
    Object.entries(settings).map(([name, one]) => [name, one.read(environment[one.env])]),
  ) as unknown as Settings
  const { databaseUrlFile, secretFile, newSecretFile, oidcClientSecretFile, ...rest } = read
  if (databaseUrlFile !== undefined) rest.databaseUrl = readSecretFile('DATABASE_URL_FILE', databaseUrlFile)
  if (secretFile !== undefined) rest.secret = settings.secret.read(readSecretFile('POSTRIDER_SECRET_FILE', secretFile))
  if (newSecretFile !== undefined) rest.newSecret = settings.newSecret.read(readSecretFile('POSTRIDER_SECRET_NEW_FILE', newSecretFile))
  if (oidcClientSecretFile !== undefined) rest.oidcClientSecret = readSecretFile('POSTRIDER_OIDC_CLIENT_SECRET_FILE', oidcClientSecretFile)
  const problem = openIdProblem(rest)
  if (problem !== undefined) throw new ConfigError(problem)
  if ((rest.tlsCert === undefined) !== (rest.tlsKey === undefined))
    throw new ConfigError('POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY: set both or neither')
  const config = {
    ...rest,
    smtpHost: rest.smtpHost ?? rest.host,
    sandboxSender: rest.sandboxSender ?? `sandbox@${rest.hostname}`,
    publicUrl: rest.publicUrl ?? `http://localhost:${rest.port}`,
  }
  refuseUnusableHttps(config)
  refuseUnusableReports(config)
  refuseUnusablePolicy(config)
  return config
}

const isPublicName = (name: string) => isIP(name.replace(/^\[|\]$/g, '')) === 0 && name.includes('.') && !/\.(localhost|local)$/.test(name)

/** Certificates need public host names. */
function refuseUnusableHttps({ https, publicUrl, hostname, roles, tlsCert }: Config): void {
  if (!https) return
  const { protocol, hostname: publicHost } = new URL(publicUrl)
  if (roles.includes('api') && (protocol !== 'https:' || !isPublicName(publicHost)))
    throw new ConfigError(
      `POSTRIDER_HTTPS=on needs a POSTRIDER_PUBLIC_URL with https and a public host name, such as https://mail.example.com: "${publicUrl}" is not one`,
    )
  if (roles.includes('inbound') && tlsCert === undefined && !isPublicName(hostname))
    throw new ConfigError(
      `POSTRIDER_HTTPS=on needs a public host name in POSTRIDER_HOSTNAME for the certificate of the SMTP listeners: "${hostname}" is not one. Set it, or POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY`,
    )
}

/** The policy is served over HTTPS by Postrider itself, at a name below the host name. */
function refuseUnusablePolicy({ mtaSts, https, hostname }: Config): void {
  if (mtaSts === 'off') return
  if (!https) throw new ConfigError(`POSTRIDER_MTA_STS=${mtaSts} needs POSTRIDER_HTTPS=on: Postrider serves the policy itself`)
  if (!isPublicName(hostname))
    throw new ConfigError(`POSTRIDER_MTA_STS=${mtaSts} needs a public host name in POSTRIDER_HOSTNAME: "${hostname}" is not one`)
}

/** Reports are signed by the domain of the sandbox sender, which their receivers look up. */
function refuseUnusableReports({ tlsReports, sandboxSender }: Config): void {
  const domain = sandboxSender.slice(sandboxSender.lastIndexOf('@') + 1)
  if (tlsReports && !isPublicName(domain))
    throw new ConfigError(
      `POSTRIDER_TLS_REPORTS needs a public host name in POSTRIDER_HOSTNAME, whose key signs the reports: "${domain}" is not one`,
    )
}
