/** Passwords of people: argon2id (RFC 9106), in the usual text form. A few at a time, because each takes 19 MiB and some 20 ms of a core. */
import { argon2, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { type Ids, openGate, Refusal } from '#base'

/** OWASP's smallest recommended cost; memory in KiB. */
const memory = 19_456
const passes = 2
const parallelism = 1
const tagLength = 32
const saltLength = 22
const shortest = 10
const longest = 256
const mostAtOnce = 2
const mostWaiting = 50

const derive = promisify(argon2)

const turns = openGate(mostAtOnce)

/** One of `mostAtOnce` turns; refuses `rate_limit_exceeded` when too many wait. */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (turns.waiting >= mostWaiting)
    throw new Refusal('rate_limit_exceeded', { message: 'too many people sign in at the same time', retryAfterSeconds: 2 })
  return turns.run(work)
}

const tagOf = (password: string, salt: Buffer): Promise<Buffer> =>
  inTurn(() => derive('argon2id', { message: password.normalize('NFKC'), nonce: salt, memory, passes, parallelism, tagLength }))

const bare = (octets: Buffer) => octets.toString('base64').replace(/=+$/, '')
const head = `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$`

/** Refuses what is too short, too long, or the address itself. */
export function checkPassword(password: string, address: string): void {
  const problem =
    password.length < shortest
      ? `must have at least ${shortest} characters`
      : password.length > longest
        ? `must have at most ${longest} characters`
        : password.toLowerCase() === address.toLowerCase()
          ? 'must not be the address'
          : undefined
  if (problem !== undefined)
    throw new Refusal('validation_error', {
      field: 'password',
      message: `the password ${problem}`,
      suggestion: 'Choose a long password; a password manager makes good ones',
      details: [{ field: 'password', message: problem }],
    })
}

export async function keepPassword(password: string, ids: Ids): Promise<string> {
  const salt = Buffer.from(ids.token(saltLength))
  return `${head}${bare(salt)}$${bare(await tagOf(password, salt))}`
}

/** Takes as long for a member without a password, or for nobody, as for a wrong one. */
export async function isPassword(password: string, kept: string | null | undefined): Promise<boolean> {
  const [salt = '', tag = ''] = kept?.startsWith(head) ? kept.slice(head.length).split('$') : []
  const given = await tagOf(password.slice(0, longest + 1), Buffer.from(salt || 'bm9ib2R5IGhhcyB0aGlz', 'base64'))
  const wanted = Buffer.from(tag, 'base64')
  return wanted.length === given.length && timingSafeEqual(wanted, given)
}
