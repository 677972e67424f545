/** `postrider secret rotate`: replaces the installation's secret while the service runs. */
import { replaceKeptSecret, rotateInstallationSecret } from '#installation'
import { type Command, jsonOption, printed, UsageError } from './command-definition.ts'

const secretLength = 43

export const secretRotate: Command = {
  name: 'secret rotate',
  audited: true,
  summary: 'replace POSTRIDER_SECRET while the service runs',
  help: `postrider secret rotate [--json]

Re-encrypts all encrypted data in the database with a new secret: DKIM keys, webhook secrets and keys, stored API keys, two-factor secrets,
request logs, passwords of transports and keys of certificates. The service keeps running. During the rotation its processes start with the old or the new secret, afterwards only with
the new one. Takes about ten seconds, longer with many request logs. If the command is interrupted, run it again: it continues.

With the secret in the data directory (embedded database, POSTRIDER_SECRET not set), the command creates the new secret and stores it there.

With POSTRIDER_SECRET or POSTRIDER_SECRET_FILE, you create and store the new secret:
  1. Create a secret:      openssl rand -base64 32
  2. Add it to the settings of every process and of this command, next to the old one, as POSTRIDER_SECRET_NEW or POSTRIDER_SECRET_NEW_FILE.
  3. Run the command:      postrider secret rotate (no restart is needed before or after)
  4. In the settings, make it POSTRIDER_SECRET and remove POSTRIDER_SECRET_NEW.

Return paths, tracking links and unsubscribe links signed with the old secret stay valid. A backup needs the secret of its time: keep the
old secret as long as you keep backups from before the rotation.`,
  options: { ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async ({ db, clock, ids, config, secrets }) => {
      const isKept = config.secret === undefined
      // Also when a rotation is resumed: at its end the old secret becomes useless, and the new one is not stored here.
      if (!isKept && config.newSecret === undefined)
        throw new UsageError(
          'POSTRIDER_SECRET is a setting here, so the new secret must be one too. Set POSTRIDER_SECRET_NEW or POSTRIDER_SECRET_NEW_FILE for every process and for this command (postrider secret rotate --help)',
        )
      const done = await rotateInstallationSecret({
        db,
        clock,
        secrets,
        wanted: config.newSecret,
        makeNew: () => ids.token(secretLength),
        keepNew: (secret) => {
          if (isKept) replaceKeptSecret(config, secret)
        },
        progress: (line) => {
          if (given.options.json !== true) console.error(line)
        },
        failpoint: deps.failpoint,
      })
      const next = isKept
        ? 'The new secret is in the data directory. Keep the old one only for backups from before the rotation.'
        : 'Now set POSTRIDER_SECRET to the new secret: running processes have it, but none can start with the old one only.'
      printed(given, deps, { ...done, secretKept: isKept }, `Re-encrypted ${done.rows} rows. ${next}`)
    }),
}
