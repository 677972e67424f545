/**
 * The installation: its secret, what is made at its first start, and the house that a command is given to work in.
 * Owns: secrets, secret_rotation. Uses: base, simulator, db, tenants, members, credentials, domains, webhooks,
 * request-logs. Used by: cli, main.
 * Promises: the secret is made once, and replaced only when it is asked for, while the service runs and from wherever a replacement was ended;
 * no command works on an installation that nobody runs, nor with another secret
 * than the one it was set up with.
 */
export { type FirstStart, firstStart, welcome } from './first-start.ts'
export { type BareHouse, type House, type Houses, openHouses } from './house.ts'
export { followRing, openRing } from './ring.ts'
export { rotateSecret, sealedEverywhere } from './rotate.ts'
export { givenSecrets, replaceKeptSecret } from './secret.ts'
