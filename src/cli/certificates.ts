/** Commands for the certificates that Postrider obtains by ACME. */
import { Refusal } from '#base'
import { type CertificateRecord, listCertificates, requestRenewal } from '#certificates'
import { plainLines } from './api.ts'
import { type Command, jsonOption, printed } from './command-definition.ts'

const dayMs = 86_400_000

function line({ name, expiresAt, dueAt, failures, lastError }: CertificateRecord, nowMs: number): string {
  const state =
    expiresAt === null
      ? 'no certificate yet'
      : expiresAt.getTime() <= nowMs
        ? `expired ${expiresAt.toISOString()}`
        : `${Math.floor((expiresAt.getTime() - nowMs) / dayMs)} days left, until ${expiresAt.toISOString()}`
  const next = failures > 0 ? `${failures} failed orders, next order ${dueAt.toISOString()}` : `next order ${dueAt.toISOString()}`
  return `${name.padEnd(40)} ${state}; ${next}${lastError === null ? '' : `\n  last error: ${plainLines(lastError)}`}`
}

export const certificateList: Command = {
  name: 'certificate list',
  summary: 'list the certificates obtained by ACME',
  help: `postrider certificate list [--json]

Lists the host names for which POSTRIDER_HTTPS=on obtains certificates: expiry, next order and the last error.
With --json: {certificates: [{name, directory, issuedAt, expiresAt, dueAt, failures, lastError}]}.`,
  options: jsonOption,
  run: (given, deps) =>
    deps.withInstallation(async ({ db, clock }) => {
      const found = await listCertificates(db)
      const lines = found.map((one) => line(one, clock.nowMs()))
      printed(
        given,
        deps,
        { certificates: found },
        lines.length > 0 ? lines.join('\n') : 'no names: set POSTRIDER_HTTPS=on and start the service',
      )
    }),
}

export const certificateRenew: Command = {
  name: 'certificate renew',
  audited: true,
  summary: 'order a certificate again now',
  help: `postrider certificate renew NAME [--json]

Makes the next order for NAME due now: after you corrected the cause of a failure, or to replace a private key. The running service places it
at once; the present certificate stays in use until then. Certificate authorities limit orders: Let's Encrypt issues the same
certificate five times a week.`,
  options: jsonOption,
  positionals: ['NAME'],
  run: (given, deps) =>
    deps.withInstallation(async ({ db, clock }) => {
      const name = (given.positionals[0] as string).toLowerCase()
      if (!(await requestRenewal(db, name, clock.nowMs())))
        throw new Refusal('not_found', {
          message: `no such certificate: ${name}`,
          suggestion: 'Run postrider certificate list for all names',
        })
      printed(
        given,
        deps,
        { name, requested: true },
        `the service orders a certificate for ${name} now; postrider certificate list shows the result`,
      )
    }),
}
