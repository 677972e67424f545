/**
 * Password hashing with argon2id (RFC 9106) in its usual text form. Only a few run at a time, because each takes 19 MiB and about 20 ms of
 * a core.
 */
import { argon2, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { type Ids, openSemaphore, Refusal } from '#base'

/** OWASP's smallest recommended cost; memory in KiB. */
const memory = 19_456
const passes = 2
const parallelism = 1
const tagLength = 32
const saltLength = 22
const shortest = 10
const maxLength = 256
const maxAtOnce = 2
const maxWaiting = 50

const derive = promisify(argon2)

/** Separate queues, so that sign-ins from known devices do not wait behind a flood of others. */
const lines = { strangers: openSemaphore(maxAtOnce), known: openSemaphore(1) }
export type SignInQueue = keyof typeof lines

/** Runs `work` as one of at most `maxAtOnce`; refuses `rate_limit_exceeded` if the queue is full. */
async function inTurn<T>(line: SignInQueue, work: () => Promise<T>): Promise<T> {
  const turns = lines[line]
  if (turns.waiting >= maxWaiting)
    throw new Refusal('rate_limit_exceeded', { message: 'too many simultaneous sign-ins', retryAfterSeconds: 2 })
  return turns.run(work)
}

const tagOf = (password: string, salt: Buffer, line: SignInQueue): Promise<Buffer> =>
  inTurn(line, () => derive('argon2id', { message: password.normalize('NFKC'), nonce: salt, memory, passes, parallelism, tagLength }))

const bare = (octets: Buffer) => octets.toString('base64').replace(/=+$/, '')
const head = `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$`

/** Refuses a password that is too short, too long, or equal to the address. */
export function checkPassword(password: string, address: string): void {
  const problem =
    password.length < shortest
      ? `must have at least ${shortest} characters`
      : password.length > maxLength
        ? `must have at most ${maxLength} characters`
        : password.toLowerCase() === address.toLowerCase()
          ? 'must not be the email address'
          : undefined
  if (problem !== undefined)
    throw new Refusal('validation_error', {
      field: 'password',
      message: `the password ${problem}`,
      suggestion: 'Choose a longer password, for example from a password manager',
      details: [{ field: 'password', message: problem }],
    })
}

/**
 * Hashes with the salt of `alike`, another password of the same address, so that one guess is checked against all of them in the same time.
 */
export async function hashPassword(password: string, ids: Ids, alike?: string | null): Promise<string> {
  const known = saltAndTag(alike)
  const salt = known ? known.salt : Buffer.from(ids.token(saltLength))
  return `${head}${bare(salt)}$${bare(await tagOf(password, salt, 'strangers'))}`
}

function saltAndTag(kept: string | null | undefined): { salt: Buffer; tag: Buffer } | undefined {
  const [salt = '', tag = ''] = kept?.startsWith(head) ? kept.slice(head.length).split('$') : []
  return salt === '' ? undefined : { salt: Buffer.from(salt, 'base64'), tag: Buffer.from(tag, 'base64') }
}

const decoyPassword = Buffer.from('nobody has this')

/** Returns the candidates whose password matches. Takes the same time without candidates or stored passwords as for a wrong password. */
export async function verifyPassword<Who extends { password: string | null }>(
  password: string,
  whose: readonly Who[],
  line: SignInQueue,
): Promise<Who[]> {
  const typed = password.slice(0, maxLength + 1)
  const kept = whose.flatMap((who) => {
    const found = saltAndTag(who.password)
    return found ? [{ who, ...found }] : []
  })
  const given = new Map<string, Buffer>()
  for (const salt of kept.length === 0 ? [decoyPassword] : kept.map((one) => one.salt)) {
    const name = salt.toString('hex')
    if (!given.has(name)) given.set(name, await tagOf(typed, salt, line))
  }
  return kept
    .filter(({ salt, tag }) => {
      const made = given.get(salt.toString('hex'))
      return made !== undefined && made.length === tag.length && timingSafeEqual(made, tag)
    })
    .map(({ who }) => who)
}
