/** Invalid certificates, issued by the same code as the valid ones. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock, systemRandom } from '#base'
import { ensureCertificate } from '#inbound'

function certificateFor(hostname: string, madeAtMs: number) {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'postrider-certificate-'))
  try {
    const settings = { dataDirectory, hostname, tlsCert: undefined, tlsKey: undefined }
    ensureCertificate(settings, { clock: { ...systemClock, nowMs: () => madeAtMs }, random: systemRandom })
    const read = (name: string) => readFileSync(join(dataDirectory, name), 'utf8')
    return { cert: read('smtp-certificate.pem'), key: read('smtp-key.pem') }
  } finally {
    rmSync(dataDirectory, { recursive: true })
  }
}

/** Valid for ten years from 2010. */
export const expiredCertificate = certificateFor('mx.example.test', Date.UTC(2010, 0))
export const otherCertificate = certificateFor('somebody-else.test', systemClock.nowMs())
