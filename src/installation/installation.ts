/**
 * The installation: its secret, its first start, and the context in which commands run.
 * Owns: secrets, secret_rotation. Uses: base, simulator, db, tenants, members, credentials, domains, certificates, delivery, webhooks,
 * request-logs.
 * Used by: cli, main.
 * Promises: the secret is created once, and replaced only on request, while the service runs, resuming an interrupted replacement; a
 * command works only on an installation that is in use, and only with its secret.
 */
export { type FirstStart, firstStart, welcome } from './first-start.ts'
export { followRing, openRing } from './known-secrets.ts'
export { rotateInstallationSecret, sealedEverywhere } from './rotate-secret.ts'
export { givenSecrets, replaceKeptSecret } from './secret.ts'
export { waitForCommand } from './service-start.ts'
export { type Installation, type Installations, openInstallations, type RawDatabase } from './with-installation.ts'
