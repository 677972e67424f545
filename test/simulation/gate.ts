/**
 * The database as the processes of the simulation reach it: real PostgreSQL, one statement or transaction at a time, in an order drawn from
 * the seed, so that a run repeats. At each one a fault may strike: the process dies before or after it, the answer is lost, the server is
 * away, its disk is full.
 */
import { DatabaseError } from 'pg'
import type { Chance } from '#crash-test'
import { CommitUnknown, DatabaseUnreachable, type Db, type Queryable, type Session, type Tx } from '#db'
import type { Life } from './time.ts'

/** What becomes of one statement or transaction. */
export type Fate =
  | 'done'
  | 'unreachable'
  | 'lost before'
  | 'lost after'
  | 'disk full'
  | 'dies before'
  | 'dies inside'
  | 'dies after'
  | 'freezes after'

export interface Asked {
  life: Life
  /** Of the statement; of a transaction 'transaction'. */
  text: string
  isWrite: boolean
}

interface Operation extends Asked {
  /** The fate is drawn when its turn comes. */
  go(fate: Fate): Promise<void>
}

export interface Gate {
  dbOf(life: Life, real: Db): Db
  /** Does everything that is asked for, and what follows from it, until all wait for time to pass. */
  settle(): Promise<void>
  /** Statements and transactions so far. */
  readonly count: number
  /** Those among them that have changed something besides leases. */
  readonly changes: number
}

export interface GateDeps {
  chance: Chance
  fateOf(asked: Asked): Fate
  /** Sees each answer of a single statement. */
  seen?: (asked: Asked, rows: unknown) => void
}

const isReading = (text: string) => /^(select|with recursive owned|begin)/.test(text) && !/\b(update|insert|delete)\b/.test(text)
const isOfLeases = (text: string) => /delivery_processes|shard_leases|webhook_processes|webhook_endpoints/.test(text)
const hasChanged = ({ text, isWrite }: Asked, result: unknown) =>
  isWrite && result !== 0 && !(Array.isArray(result) && result.length === 0) && !isOfLeases(text)
const stalledMs = 30_000

export function openGate({ chance, fateOf, seen }: GateDeps): Gate {
  const asked: Operation[] = []
  let count = 0
  let changes = 0
  /** Answers of the server that are awaited now. */
  let awaited = 0
  let changed = () => {}
  const serverWork = async <T>(work: () => Promise<T>): Promise<T> => {
    awaited++
    try {
      return await work()
    } finally {
      awaited--
      changed()
    }
  }

  const fail = (fate: Fate): Error | undefined => {
    if (fate === 'unreachable') return new DatabaseUnreachable('the database cannot be reached (simulated)', undefined)
    if (fate === 'lost before' || fate === 'lost after') return new CommitUnknown(undefined, new Error('the connection broke (simulated)'))
    if (fate !== 'disk full') return undefined
    const full = new DatabaseError('could not extend file: No space left on device (simulated)', 0, 'error')
    full.code = '53100'
    return full
  }

  /** Queues one operation of a life; `work` talks to the server. */
  const submit = <T>(one: Asked, work: (fate: Fate) => Promise<T>): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      asked.push({
        ...one,
        async go(fate) {
          const { life } = one
          if (fate === 'dies before') return life.end()
          const failure = fail(fate)
          if (failure && fate !== 'lost after') return life.hear(() => reject(failure))
          try {
            const result = await work(fate)
            if (fate === 'dies after') life.end()
            if (fate === 'freezes after') life.freeze()
            life.hear(() => (failure ? reject(failure) : resolve(result)))
          } catch (error) {
            life.hear(() => reject(error))
          }
        },
      })
      changed()
    })

  const statementOf = (life: Life, text: string): Asked => ({ life, text, isWrite: !isReading(text) })

  const verbsOf = (life: Life, on: Queryable, through: <T>(one: Asked, work: () => Promise<T>) => Promise<T>): Queryable => ({
    rows: (statement, parameters) => through(statementOf(life, statement.text), () => on.rows(statement, parameters)),
    first: (statement, parameters) => through(statementOf(life, statement.text), () => on.first(statement, parameters)),
    run: (statement, parameters) => through(statementOf(life, statement.text), () => on.run(statement, parameters)),
    script: (text) => through(statementOf(life, text), () => on.script(text)),
  })

  const single =
    (_life: Life) =>
    <T>(one: Asked, work: () => Promise<T>): Promise<T> =>
      submit(one, async () => {
        const result = await serverWork(work)
        if (hasChanged(one, result)) changes++
        seen?.(one, result)
        return result
      })

  const transaction = <T>(life: Life, real: Db, work: (tx: Tx) => Promise<T>): Promise<T> =>
    submit({ life, text: 'transaction', isWrite: true }, async (fate) => {
      /** Its owner waits for something else, so that others have their turn; what it says from now on waits for its own. */
      let isParked = false
      let left = fate === 'dies inside' ? chance.between(1, 3) : Infinity
      let isOver = false
      const inside = async (tx: Tx): Promise<T> => {
        const through = async <R>(one: Asked, ask: () => Promise<R>): Promise<R> => {
          if (one.isWrite) changes++
          if (--left === 0) {
            life.end()
            throw await life.ended.catch((error) => error)
          }
          return isParked ? submit(one, () => serverWork(ask)) : serverWork(ask)
        }
        awaited--
        changed()
        try {
          return await Promise.race([work({ scope: 'transaction', ...verbsOf(life, tx, through) }), life.ended])
        } finally {
          awaited++
        }
      }
      const done = serverWork(() => real.transaction(inside)).finally(() => {
        isOver = true
      })
      await Promise.race([done.catch(() => undefined), idle(() => isOver)])
      if (!isOver) isParked = true
      if (!isParked) return done
      parked.add(done)
      void done.catch(() => undefined).finally(() => parked.delete(done))
      return Promise.reject(new Parked(done))
    }).catch((error) => {
      if (!(error instanceof Parked)) throw error
      return new Promise<T>((resolve, reject) =>
        (error.done as Promise<T>).then(
          (value) => life.hear(() => resolve(value)),
          (reason) => life.hear(() => reject(reason)),
        ),
      )
    })
  const parked = new Set<Promise<unknown>>()

  /** Resolves when nothing moves any more although nothing is awaited from the server, or when `isOver`. */
  const idle = async (isOver: () => boolean): Promise<void> => {
    for (let still = 0; still < 4 && !isOver(); ) {
      if (awaited > 0) {
        await answer()
        still = 0
      } else {
        await turn()
        still++
      }
    }
  }

  const answer = () =>
    new Promise<void>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error('the simulation stalls: the database does not answer')), stalledMs)
      changed = () => {
        clearTimeout(late)
        changed = () => {}
        resolve()
      }
    })

  return {
    get count() {
      return count
    },
    get changes() {
      return changes
    },
    dbOf: (life, real) => ({
      scope: 'database',
      ...verbsOf(life, real, single(life)),
      transaction: (work) => transaction(life, real, work),
      outcomeOf: (id) => real.outcomeOf(id),
      listen: async () => async () => {},
      notify: async () => {},
      session: async (): Promise<Session> => {
        throw new Error('the simulation has no sessions')
      },
      close: async () => {},
    }),
    async settle() {
      for (let still = 0; still < 3; ) {
        if (awaited > 0) {
          await answer()
          continue
        }
        // What was put off to the next turns of this thread comes first: else the server's answer would overtake it, or not.
        await turn()
        await turn()
        const ready = asked.filter(({ life }) => !life.isFrozen)
        const one = ready.length > 0 ? chance.pick(ready) : undefined
        if (!one) {
          still++
          continue
        }
        still = 0
        asked.splice(asked.indexOf(one), 1)
        if (one.life.isOver) continue
        count++
        await one.go(fateOf(one))
      }
    },
  }
}

class Parked extends Error {
  readonly done: Promise<unknown>
  constructor(done: Promise<unknown>) {
    super('parked')
    this.done = done
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
