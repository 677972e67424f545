/**
 * Challenges of orders in progress. The database shares them, because the CA's request may reach any instance. Any number of
 * outside requests causes at most four small queries a second.
 */
import { type Clock, pause } from '#base'
import { type Db, type Queryable, sql } from '#db'

export interface Challenge {
  name: string
  token: string
  /** RFC 8555 section 8.1. */
  keyAuthorization: string
}

export interface Challenges {
  /** The key authorization for `http://HOST/.well-known/acme-challenge/TOKEN`; undefined if no order has this token. */
  findByToken(token: string): Promise<string | undefined>
  /** The challenge of the name's order; undefined without one. */
  findByName(name: string): Promise<Challenge | undefined>
}

/** Time between two queries. A request waits for the next one, so that a challenge written a moment ago is found. */
const readEveryMs = 250
/** Longer than an order. */
const lifeMs = 300_000
const maxRows = 1000

const saveChallenge = sql`
  insert into acme_challenges (name, token, key_authorization, expires_at)
  values ($1, $2, $3, $4)
  on conflict (name) do update
  set token = excluded.token, key_authorization = excluded.key_authorization, expires_at = excluded.expires_at`

const deleteChallenge = sql`
  delete from acme_challenges
  where name = $1 or expires_at < $2`

const openChallenges = sql<Challenge>`
  select name, token, key_authorization as "keyAuthorization"
  from acme_challenges
  where expires_at >= $1
  limit $2`

export async function addChallenge(on: Queryable, { name, token, keyAuthorization }: Challenge, nowMs: number): Promise<void> {
  await on.run(saveChallenge, [name, token, keyAuthorization, new Date(nowMs + lifeMs)])
}

/** Also removes those that expired. */
export async function removeChallenge(on: Queryable, name: string, nowMs: number): Promise<void> {
  await on.run(deleteChallenge, [name, new Date(nowMs)])
}

export const openChallengeBook = (deps: { db: Db; clock: Clock }): Challenges => new ChallengeBook(deps)

class ChallengeBook implements Challenges {
  readonly #db: Db
  readonly #clock: Clock
  #found: readonly Challenge[] = []
  /** The read that has not begun yet; requests that arrive before it begins share it. */
  #next: Promise<void> | undefined
  #readAtMs = Number.NEGATIVE_INFINITY

  constructor({ db, clock }: { db: Db; clock: Clock }) {
    this.#db = db
    this.#clock = clock
  }

  async findByToken(token: string): Promise<string | undefined> {
    const isIt = (one: Challenge) => one.token === token
    return (this.#found.find(isIt) ?? (await this.#read()).find(isIt))?.keyAuthorization
  }

  async findByName(name: string): Promise<Challenge | undefined> {
    // Always read: a name's challenge of a moment ago may belong to an earlier order.
    return (await this.#read()).find((one) => one.name === name)
  }

  async #read(): Promise<readonly Challenge[]> {
    this.#next ??= this.#readSoon()
    await this.#next
    return this.#found
  }

  async #readSoon(): Promise<void> {
    await pause(this.#clock, Math.max(0, this.#readAtMs + readEveryMs - this.#clock.monotonicMs()))
    this.#next = undefined
    this.#readAtMs = this.#clock.monotonicMs()
    this.#found = await this.#db.rows(openChallenges, [new Date(this.#clock.nowMs()), maxRows])
  }
}
