/**
 * The database access of the simulated processes: real PostgreSQL, one statement or transaction at a time, in an order drawn from the seed,
 * so that a run repeats. A fault may strike at each one: the process dies before or after it, the answer is lost, the server is
 * unreachable, its disk is full.
 */
import { DatabaseError } from 'pg'
import type { SeededRandom } from '#crash-test'
import { CommitUnknown, DatabaseUnreachable, type Db, type DbSession, type Queryable, type Tx } from '#db'
import type { Life } from './virtual-time.ts'

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

export interface GatedStatement {
  life: Life
  /** The text of the statement, or 'transaction'. */
  text: string
  isWrite: boolean
  /** Identifies the statement and its parameters. */
  key: string
}

interface Operation extends GatedStatement {
  go(fate: Fate): Promise<void>
}

export interface Gate {
  dbOf(life: Life, real: Db): Db
  /** Resolves when every process waits for time to pass. */
  settle(): Promise<void>
  /** Statements and transactions so far. */
  readonly count: number
  /** Those that changed more than leases. */
  readonly changes: number
  /** Drops the remembered answers: the database has been replaced. */
  forget(): void
}

export interface GateDeps {
  chance: SeededRandom
  fateOf: (asked: GatedStatement) => Fate
  /** Called with each answer of a single statement. */
  seen?: (asked: GatedStatement, rows: unknown) => void
}

const isReading = (text: string) => !/\b(insert into|update|delete from|create|alter|drop)\b/.test(text.replaceAll(/\bfor update\b/g, ''))
const isOfLeases = (text: string) => /delivery_processes|shard_leases|webhook_processes|webhook_endpoints/.test(text)
const hasChanged = ({ text, isWrite }: GatedStatement, result: unknown) =>
  isWrite && result !== 0 && !(Array.isArray(result) && result.length === 0) && !isOfLeases(text)
const stalledMs = 60_000
const maxRemembered = 5000
const copyOf = (result: unknown) =>
  Array.isArray(result) ? result.map((row) => ({ ...row })) : typeof result === 'object' && result !== null ? { ...result } : result

export function openGate({ chance, fateOf, seen }: GateDeps): Gate {
  const asked: Operation[] = []
  let count = 0
  let changes = 0
  /** Number of answers now awaited from the server. */
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
    if (fate === 'unreachable') return new DatabaseUnreachable('the database is unreachable (simulated)', undefined)
    if (fate === 'lost before' || fate === 'lost after') return new CommitUnknown(new Error('the connection broke (simulated)'))
    if (fate !== 'disk full') return undefined
    const full = new DatabaseError('could not extend file: No space left on device (simulated)', 0, 'error')
    full.code = '53100'
    return full
  }

  /** Queues one operation of a life; `work` talks to the server. */
  const submit = <T>(one: GatedStatement, work: (fate: Fate) => Promise<T>): Promise<T> =>
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

  /**
   * Answers by statement, valid until the next change, because no statement asks for the time. The engine's loops mostly repeat the same
   * queries. The answer of a statement that changes data is not remembered.
   */
  const remembered = new Map<string, { changes: number; result: unknown }>()
  const ask = async <T>(one: GatedStatement, work: () => Promise<T>): Promise<T> => {
    const known = remembered.get(one.key)
    if (known?.changes === changes) return copyOf(known.result) as T
    const result = await serverWork(work)
    if (hasChanged(one, result)) changes++
    else if (!isOfLeases(one.text)) remembered.set(one.key, { changes, result: copyOf(result) })
    if (remembered.size > maxRemembered) remembered.clear()
    return result
  }

  type Through = <T>(one: GatedStatement, work: () => Promise<T>) => Promise<T>
  const verbsOf = (life: Life, on: () => Promise<Queryable>, through: Through): Queryable => {
    const statementOf = (verb: string, text: string, parameters: readonly unknown[] = []): GatedStatement => ({
      life,
      text,
      isWrite: !isReading(text),
      key: `${verb} ${text} ${JSON.stringify(parameters)}`,
    })
    return {
      rows: (statement, given) => through(statementOf('rows', statement.text, given), async () => (await on()).rows(statement, given)),
      first: (statement, given) => through(statementOf('first', statement.text, given), async () => (await on()).first(statement, given)),
      run: (statement, given) => through(statementOf('run', statement.text, given), async () => (await on()).run(statement, given)),
      script: (text) => through({ ...statementOf('script', text), isWrite: true }, async () => (await on()).script(text)),
    }
  }

  const single: Through = (one, work) =>
    submit(one, async () => {
      const result = await ask(one, work)
      seen?.(one, result)
      return result
    })

  /** Begins with the first statement whose answer is not remembered: many transactions change no data. */
  const transaction = <T>(life: Life, real: Db, work: (tx: Tx) => Promise<T>): Promise<T> =>
    submit({ life, text: 'transaction', isWrite: true, key: '' }, async (fate) => {
      /** The transaction's owner waits for another event, so other operations run first. Its further statements wait for their own turn. */
      let isParked = false
      let left = fate === 'dies inside' ? chance.between(1, 3) : Infinity
      let isOver = false
      let hasWritten = false
      let begun: Promise<Tx> | undefined
      let ended: Promise<T> | undefined
      const outcome = Promise.withResolvers<T>()
      outcome.promise.catch(() => undefined)
      const begin = () => {
        begun ??= new Promise<Tx>((resolve, reject) => {
          ended = serverWork(() =>
            real.transaction(async (tx) => {
              awaited--
              changed()
              resolve(tx)
              try {
                return await outcome.promise
              } finally {
                awaited++
              }
            }),
          )
          ended.catch(reject)
        })
        return begun
      }
      const through: Through = async (one, work) => {
        if (--left === 0) {
          life.end()
          throw await life.ended.catch((error) => error)
        }
        const before = changes
        const result = await (isParked ? submit(one, () => ask(one, work)) : ask(one, work))
        hasWritten ||= changes !== before
        return result
      }
      const inside = async (): Promise<T> => {
        try {
          outcome.resolve(await Promise.race([work({ scope: 'transaction', ...verbsOf(life, begin, through) }), life.ended]))
        } catch (error) {
          outcome.reject(error)
        }
        return ended ?? outcome.promise
      }
      const done = inside().finally(() => {
        isOver = true
        // A rollback may undo the transaction's own changes that it has read.
        if (hasWritten) changes++
        changed()
      })
      await Promise.race([done.catch(() => undefined), idle(() => isOver)])
      if (!isOver) isParked = true
      if (!isParked) return done
      parked.add(done)
      void done.catch(() => undefined).finally(() => parked.delete(done))
      return Promise.reject(new Parked(done))
    }).catch((error) => {
      if (!(error instanceof Parked)) throw error
      return new Promise<T>((resolve, reject) => {
        ;(error.done as Promise<T>).then(
          (value) => life.hear(() => resolve(value)),
          (reason: unknown) => life.hear(() => reject(reason)),
        )
      })
    })
  const parked = new Set<Promise<unknown>>()

  /** Resolves when the process is idle and no answer is awaited from the server, or when `isOver`. */
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
    forget() {
      changes++
    },
    dbOf: (life, real) => ({
      scope: 'database',
      ...verbsOf(life, async () => real, single),
      transaction: (work) => transaction(life, real, work),
      listen: async () => async () => {},
      notify: async () => {},
      session: async (): Promise<DbSession> => {
        throw new Error('the simulation has no sessions')
      },
      /** The simulated server keeps every commit. */
      interruptions: 0,
      close: async () => {},
    }),
    async settle() {
      for (let still = 0; still < 3; ) {
        if (awaited > 0) {
          await answer()
          continue
        }
        // Runs the callbacks deferred to the next turns of this thread first; otherwise the server's answer would overtake them only in
        // some runs.
        await turn()
        await turn()
        if (awaited > 0) continue
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
