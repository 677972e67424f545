/** `postrider secret rotate`: replaces the installation's secret while the service runs. */
import { replaceKeptSecret, rotateInstallationSecret } from '#installation'
import { type Command, jsonOption, printed, UsageError } from './command-definition.ts'

const secretLength = 43

export const secretRotate: Command = {
  name: 'secret rotate',
  audited: true,
  summary: 'replace POSTRIDER_SECRET by another, while the service runs',
  help: `postrider secret rotate [--json]

Seals everything that is sealed in the database anew, with a new secret: DKIM keys, secrets and keys of webhooks, kept API keys, second factors,
request logs. The service keeps running, and its processes start with the old or the new secret. When the command has ended, they start
with the new one only. It takes about ten seconds, and longer with many request logs. If it is interrupted, call it again: it continues.

With the secret in the data directory (the embedded database, no POSTRIDER_SECRET), the new one is made and takes its place in that folder.

With POSTRIDER_SECRET or POSTRIDER_SECRET_FILE, you make and keep it:
  1. make one:                           openssl rand -base64 32
  2. add it to the settings of every process and of this command, beside the old one, as POSTRIDER_SECRET_NEW (or POSTRIDER_SECRET_NEW_FILE)
  3. postrider secret rotate             no restart is needed, before or after
  4. make it POSTRIDER_SECRET in the settings, and take POSTRIDER_SECRET_NEW out

Return paths, tracking and unsubscribe links that were signed with the old secret stay valid. Backups keep the secret of their time: keep the
old secret as long as you keep backups from before.`,
  options: { ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async ({ db, clock, ids, config, secrets }) => {
      const isKept = config.secret === undefined
      // Also when a rotation is resumed: at its end the old secret becomes useless, and the new one is not stored here.
      if (!isKept && config.newSecret === undefined)
        throw new UsageError(
          'the secret is given as a setting here, so the new one must be too: give it as POSTRIDER_SECRET_NEW or POSTRIDER_SECRET_NEW_FILE, to every process and to this command (postrider secret rotate --help)',
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
        ? 'The new secret is in the data directory. Keep the old one only with backups from before.'
        : 'Give the new secret as POSTRIDER_SECRET from now on: processes that run know it, and none starts with the old one alone.'
      printed(given, deps, { ...done, secretKept: isKept }, `${done.rows} sealed rows were sealed anew. ${next}`)
    }),
}
