/** One order at a certificate authority (RFC 8555): account, challenge, key, certificate. Protocol and signatures come from acme-client. */
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import type { Authorization, Client } from 'acme-client'
import { type Clock, pause, type Secrets } from '#base'
import type { Db } from '#db'
import { openTransport, TooManyOrders } from './acme-requests.ts'
import { type CertificateWithKey, ensureAccountKey } from './certificate-records.ts'
import { addChallenge, removeChallenge } from './challenges.ts'
import { type ChallengeKind, orderWithinMs } from './schedule.ts'

export interface OrderDeps {
  db: Db
  clock: Clock
  secrets: Secrets
  /** POSTRIDER_ACME_DIRECTORY. */
  directory: string
  /** POSTRIDER_ACME_CONTACT: the address that the CA may write to. */
  contact: string | undefined
}

export interface Obtained extends CertificateWithKey {
  /** Milliseconds since the epoch, from the certificate. */
  fromMs: number
  toMs: number
}

/** acme-client waits this long between two looks at an order's state; the wait doubles up to the maximum. */
const firstLookMs = 500
const maxLookMs = 8000
const maxLooks = 14

export const newKey = (): string =>
  generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey

/**
 * Obtains a certificate for `name`. Throws the CA's reason, `TooManyOrders`, or an error after `orderWithinMs` or when `stopping` aborts; the
 * challenge is removed in any case, if the database is there.
 */
export async function obtainCertificate(name: string, kind: ChallengeKind, deps: OrderDeps, stopping: AbortSignal): Promise<Obtained> {
  const { db, clock } = deps
  const over = new AbortController()
  const late = pause(clock, orderWithinMs, AbortSignal.any([over.signal, stopping])).then((): never => {
    throw new Error(stopping.aborted ? 'the service stopped during the order' : `not finished within ${orderWithinMs / 1000} s`)
  })
  const { promise: refusal, reject: refused } = Promise.withResolvers<never>()
  try {
    return await Promise.race([order(name, kind, deps, refused), late, refusal])
  } finally {
    over.abort()
    for (const one of [late, refusal]) one.catch(() => undefined)
    // A challenge that stays expires, and must not replace the result.
    await removeChallenge(db, name, clock.nowMs()).catch(() => undefined)
  }
}

async function order(name: string, kind: ChallengeKind, deps: OrderDeps, refused: (error: TooManyOrders) => void): Promise<Obtained> {
  // Loaded for an order only: it takes 20 MB of memory.
  const { crypto } = await import('acme-client')
  const client = await openAccount(deps, refused)
  const placed = await client.createOrder({ identifiers: [{ type: 'dns', value: name }] })
  for (const authorization of await client.getAuthorizations(placed)) await authorize(client, authorization, kind, deps)
  const key = newKey()
  const [, request] = await crypto.createCsr({ altNames: [name] }, key)
  const finalised = await client.finalizeOrder(placed, request)
  return checked(name, { cert: await client.getCertificate(finalised), key }, deps.clock.nowMs())
}

async function openAccount(
  { db, clock, secrets, directory, contact }: OrderDeps,
  refused: (error: TooManyOrders) => void,
): Promise<Client> {
  const { Client, axios } = await import('acme-client')
  axios.defaults.adapter = openTransport(clock, refused)
  const accountKey = await ensureAccountKey(db, secrets, directory, { nowMs: clock.nowMs(), make: newKey })
  const client = new Client({
    directoryUrl: directory,
    accountKey,
    backoffAttempts: maxLooks,
    backoffMin: firstLookMs,
    backoffMax: maxLookMs,
  })
  await register(client, contact === undefined ? {} : { contact: [`mailto:${contact}`] })
  return client
}

/** Each time, because the CA may have lost the account: it finds the account by its key, or registers it. */
async function register(client: Client, contact: { contact?: string[] }): Promise<void> {
  try {
    await client.createAccount({ onlyReturnExisting: true })
  } catch (error) {
    if (error instanceof TooManyOrders) throw error
    await client.createAccount({ termsOfServiceAgreed: true, ...contact })
    return
  }
  // An empty update is refused.
  if (contact.contact) await client.updateAccount(contact)
}

/** Proves control of the name, unless the CA still knows an earlier proof (RFC 8555 section 7.1.4). */
async function authorize(client: Client, authorization: Authorization, kind: ChallengeKind, { db, clock }: OrderDeps): Promise<void> {
  if (authorization.status === 'valid') return
  const name = authorization.identifier.value
  const challenge = authorization.challenges.find(({ type }) => type === kind)
  if (!challenge) throw new Error(`the CA does not offer the challenge ${kind} for ${name}`)
  const keyAuthorization = await client.getChallengeKeyAuthorization(challenge)
  await addChallenge(db, { name, token: challenge.token, keyAuthorization }, clock.nowMs())
  await client.completeChallenge(challenge)
  await client.waitForValidStatus(challenge)
}

/** Throws unless servers can use the certificate for `name` now. */
function checked(name: string, pair: CertificateWithKey, nowMs: number): Obtained {
  const certificate = new X509Certificate(pair.cert)
  const toMs = Date.parse(certificate.validTo)
  if (certificate.checkHost(name) === undefined) throw new Error(`the CA issued a certificate that is not valid for ${name}`)
  if (!certificate.checkPrivateKey(createPrivateKey(pair.key))) throw new Error('the CA issued a certificate for another key')
  if (toMs <= nowMs) throw new Error(`the CA issued a certificate that ended on ${certificate.validTo}. Check the clock of this machine`)
  return { ...pair, fromMs: Date.parse(certificate.validFrom), toMs }
}
