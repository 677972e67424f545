/**
 * The installation: its secret, what is made at its first start, and the house that a command is given to work in.
 * Owns: nothing. Uses: base, simulator, db, tenants, members, credentials, domains. Used by: cli, main.
 * Promises: the secret is made once and never replaced; no command works on an installation that nobody runs, nor with another secret
 * than the one it was set up with.
 */
export { type FirstStart, firstStart, welcome } from './first-start.ts'
export { type BareHouse, type House, type Houses, openHouses } from './house.ts'
export { readSecret, refuseOtherSecret } from './secret.ts'
