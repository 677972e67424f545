/**
 * First start: creates the organisation, the simulator's domain, two keys and an owner in an empty database, and shows them to the
 * operator.
 */
import type { Clock, Config, Ids, Secrets } from '#base'
import type { Db } from '#db'
import { simulatorDomain } from '#simulator'
import { createOrganisation, findOrganisation } from '#tenants'

/** Shown once: only hashes of these are stored. */
export interface FirstStart {
  liveKey: string
  testKey: string
  signInUrl: string
}

const ownerOf = (config: Config) => `owner@${config.hostname}`

/** Undefined if there is no first start to show, or it was to be silent. */
export async function firstStart(
  config: Config,
  db: Db,
  { clock, ids, secrets }: { clock: Clock; ids: Ids; secrets: Secrets },
): Promise<FirstStart | undefined> {
  if (await findOrganisation(db)) return undefined
  // Static imports would load these modules before PostgreSQL starts.
  const [{ createKey }, { addDomain, makeDomain }, { addMember }] = await Promise.all([
    import('#credentials'),
    import('#domains'),
    import('#members'),
  ])
  const facts = { nowMs: clock.nowMs(), ids }
  return db.transaction(async (tx) => {
    const tenant = await createOrganisation(tx, { name: 'Organisation', secretFingerprint: secrets.fingerprint, ...facts })
    const simulated = { tenantId: tenant.id, name: simulatorDomain, trusted: true, testOnly: true }
    await addDomain(tx, await makeDomain(simulated, { ...facts, secrets }))
    if (config.firstStart === 'quiet') return undefined
    const key = async (mode: 'live' | 'test') =>
      (await createKey(tx, { mode, name: `first-${mode}-key`, tenantId: null, permissions: null }, facts)).key
    const { signInToken } = await addMember(tx, { address: ownerOf(config), role: 'owner', tenantId: null }, facts)
    return { liveKey: await key('live'), testKey: await key('test'), signInUrl: `${config.publicUrl}/sign-in/${signInToken}` }
  })
}

/** The message shown to the operator, also if the start ended before the service ran. */
export const welcome = (config: Config, shown: FirstStart, isRunning: boolean) => `
Postrider is ${isRunning ? 'running' : 'set up, but not running'}. Dashboard ${config.publicUrl}, API ${config.publicUrl}/v1, reference ${config.publicUrl}/docs

These keys and the link are shown only once:
  live key          ${shown.liveKey}
  test key          ${shown.testKey}
  owner's sign-in   ${shown.signInUrl} (${ownerOf(config)}; works once, within 24 hours)

Send a first email with the test key. It does not leave this machine:

  curl -s ${config.publicUrl}/v1/emails \\
    -H 'Authorization: Bearer ${shown.testKey}' -H 'Content-Type: application/json' \\
    -d '{"from":"hello@${simulatorDomain}","to":["delivered@${simulatorDomain}"],"subject":"Hello","text":"It works."}'

Show its status:

  curl -s '${config.publicUrl}/v1/emails?perPage=1' -H 'Authorization: Bearer ${shown.testKey}'
`
