/** The errors after which a write is repeated, and the flag that it then receives. */
import { DatabaseError } from 'pg'
import { expect, test } from 'vitest'
import { type Clock, systemClock } from '#base'
import { CommitUnknown, DatabaseUnreachable, NotDurable } from './errors.ts'
import { resolveUnknown, StillUnknown } from './resolve-unknown.ts'

/** Each pause ends at once and takes its time on the clock. */
function quickClock(): Clock {
  let nowMs = 0
  return {
    ...systemClock,
    monotonicMs: () => nowMs,
    after(delayMs, action) {
      nowMs += delayMs
      queueMicrotask(action)
      return () => {}
    },
  }
}

const lost = new CommitUnknown(new Error('the connection broke'))
const unreachable = new DatabaseUnreachable('away', undefined)
const full = stateError('53100')
const refused = stateError('22003')
const notDurable = new NotDurable()

function stateError(code: string): DatabaseError {
  const error = new DatabaseError(code, 0, 'error')
  error.code = code
  return error
}

test.each([
  ['a lost reply is followed by a repetition', [lost], 'written'],
  ['an unreachable database is asked again', [unreachable, unreachable], 'written'],
  ['a fault of the first try is an answer', [full], full],
  ['a fault after a lost reply shows nothing about the first try', [lost, full], 'written'],
  ['a rejection of the content is an answer, also after a lost reply', [lost, refused], refused],
  ['a commit without its standby is an answer, also after a lost reply', [lost, notDurable], notDurable],
])('%s', async (_, errors, result) => {
  const tries: boolean[] = []
  const write = async (mayBeWritten: boolean) => {
    const error = errors[tries.length]
    tries.push(mayBeWritten)
    if (error) throw error
    return 'written'
  }
  const resolved = await resolveUnknown(write, { clock: quickClock() }).catch((error: unknown) => error)
  expect(resolved).toBe(result)
  expect(tries).toEqual([false, ...tries.slice(1).map(() => true)])
  expect(tries).toHaveLength(result === 'written' ? errors.length + 1 : errors.length)
})

test('at the deadline the result is still unknown, and is not taken for a failure', async () => {
  let tries = 0
  const write = () => {
    tries++
    return Promise.reject(lost)
  }
  await expect(resolveUnknown(write, { clock: quickClock(), deadlineMs: 250 })).rejects.toBeInstanceOf(StillUnknown)
  expect(tries).toBe(4)
})
