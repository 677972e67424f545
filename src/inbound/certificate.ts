/**
 * Certificate of the SMTP listeners: the operator's files, polled because renewals replace them; otherwise the one by ACME; until there is
 * one, a self-signed one created in the data directory.
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { type Clock, type Config, ConfigError, type Log, makeDataDirectory, type Random } from '#base'
import type { CertificateStore } from '#certificates'
import { makeSelfSigned } from './self-signed.ts'

export interface Certificate {
  cert: string
  key: string
}

export type CertificateSettings = Pick<Config, 'dataDirectory' | 'hostname' | 'tlsCert' | 'tlsKey'>

const lookEveryMs = 10_000
const renewBeforeMs = 30 * 86_400_000

/** Reads the certificate's current files; throws ConfigError if they are unusable. */
export function readCertificate(settings: CertificateSettings): Certificate {
  const { tlsCert, tlsKey } = settings
  const paths = tlsCert !== undefined && tlsKey !== undefined ? { cert: tlsCert, key: tlsKey } : selfSignedPaths(settings)
  try {
    const certificate = { cert: readFileSync(paths.cert, 'utf8'), key: readFileSync(paths.key, 'utf8') }
    createSecureContext(certificate)
    return certificate
  } catch (error) {
    throw new ConfigError(`POSTRIDER_TLS_CERT, POSTRIDER_TLS_KEY: ${(error as Error).message}`)
  }
}

const selfSignedPaths = ({ dataDirectory }: CertificateSettings) => ({
  cert: join(dataDirectory, 'smtp-certificate.pem'),
  key: join(dataDirectory, 'smtp-key.pem'),
})

/**
 * Creates the self-signed certificate if the operator configured no files, and renews it before it expires or if the host name changed.
 * Called once, by the process that starts the listener processes. Throws ConfigError for the operator's files.
 */
export function ensureCertificate(settings: CertificateSettings, { clock, random }: { clock: Clock; random: Random }): void {
  if (settings.tlsCert === undefined && !isSelfSignedFit(settings, clock.nowMs())) {
    const paths = selfSignedPaths(settings)
    const made = makeSelfSigned(settings.hostname, { nowMs: clock.nowMs(), serial: Buffer.from(random(new Uint8Array(16))) })
    makeDataDirectory(settings.dataDirectory)
    for (const part of ['key', 'cert'] as const) {
      writeFileSync(`${paths[part]}.new`, made[part], { mode: 0o600 })
      renameSync(`${paths[part]}.new`, paths[part])
    }
  }
  readCertificate(settings)
}

function isSelfSignedFit(settings: CertificateSettings, nowMs: number): boolean {
  try {
    const certificate = new X509Certificate(readCertificate(settings).cert)
    return certificate.checkHost(settings.hostname) !== undefined && Date.parse(certificate.validTo) - nowMs > renewBeforeMs
  } catch {
    return false
  }
}

/** Calls `changed` when the files hold another certificate. While they are unusable, the old one stays in use. */
export function followCertificate(
  settings: CertificateSettings,
  facts: { clock: Clock; log: Log; now: Certificate; changed: (certificate: Certificate) => void },
): { stop(): void } {
  let { now } = facts
  let complaint = ''
  const look = () => {
    try {
      const found = readCertificate(settings)
      if (found.cert !== now.cert || found.key !== now.key) {
        now = found
        facts.changed(found)
        facts.log.info('reloaded the certificate of the SMTP listeners')
      }
      complaint = ''
    } catch (error) {
      const { message } = error as Error
      if (message !== complaint) facts.log.warn({ err: error }, 'failed to read the certificate of the SMTP listeners; keeping the old one')
      complaint = message
    }
    cancel = facts.clock.after(lookEveryMs, look)
  }
  let cancel = facts.clock.after(lookEveryMs, look)
  return { stop: () => cancel() }
}

/** Calls `changed` when ACME obtained another certificate for the host name. */
export function followStore(
  store: CertificateStore,
  facts: { hostname: string; clock: Clock; log: Log; changed: (certificate: Certificate) => void },
): { stop(): void } {
  const { hostname, clock, log } = facts
  let now = ''
  let stopped = false
  let cancel = () => {}
  const look = async () => {
    const found = await store.find(hostname)
    if (stopped || !found || found.cert === now) return
    now = found.cert
    facts.changed(found)
    log.info({ host: hostname }, 'the SMTP listeners use another certificate')
  }
  const tryLook = () => {
    cancel()
    look().catch((error: unknown) => {
      log.warn({ err: error }, 'failed to read the certificate of the SMTP listeners; keeping the old one')
      cancel = clock.after(lookEveryMs, tryLook)
    })
  }
  store.onChange(tryLook)
  // A change since the start.
  tryLook()
  return {
    stop() {
      stopped = true
      cancel()
    },
  }
}
