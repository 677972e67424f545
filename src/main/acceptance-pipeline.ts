/** The acceptance pipeline, and the credentials whose last use it saves. */
import { openAccept, openCommit } from '#accept'
import { type Log, startLoop } from '#base'
import { type Credentials, openCredentials } from '#credentials'
import { openDomains } from '#domains'
import { openLimitSettings } from '#limits'
import { openWaker } from '#spool'
import { openTenants } from '#tenants'
import { openTracks } from '#tracking'
import { clock, failpoint, type Ground, ids, type RunningRole } from './process.ts'

const saveUsesEveryMs = 10_000

/** The acceptance pipeline, for the API's process and that of the SMTP listeners. */
export function openAcceptance({ config, log, secrets, db }: Ground) {
  const tenants = openTenants({ db, clock })
  const domains = openDomains({ db, clock, secrets })
  const tracks = openTracks({ db, clock })
  const limitSettings = openLimitSettings({ db, clock, config })
  const wake = openWaker({ db, clock })
  const commit = openCommit({ db, clock, ids, limitSettings, wake, failpoint })
  const { sandboxSender, hostname, publicUrl, feedbackId } = config
  const facts = { sandboxSender, hostname, publicUrl, feedbackId }
  const accept = openAccept({ db, clock, ids, tenants, domains, tracks, limitSettings, ...facts, commit })
  const credentials = openCredentials({ db, clock })
  return { tenants, domains, tracks, limitSettings, accept, credentials, wake, uses: saveUsesOf(credentials, log) }
}

/** Saves when keys were last used, every few seconds and at the end. */
function saveUsesOf(credentials: Credentials, log: Log): RunningRole {
  const saving = startLoop({ clock, log, name: 'saving last-used times of keys', everyMs: saveUsesEveryMs }, () => credentials.saveUses())
  return {
    async stop() {
      await saving.stop()
      await credentials.saveUses().catch(() => undefined)
    },
  }
}
