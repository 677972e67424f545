import { fork } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { askChild, endChild } from './helpers.ts'

const script = new URL('http-sink.ts', import.meta.url).pathname

test('a question to a process that has ended, or ends before its answer, is rejected', async () => {
  const child = fork(script, { stdio: 'ignore' })
  await once(child, 'message')
  expect(await askChild(child, 'count')).toEqual({ messages: 0 })
  const unanswered = expect(askChild(child, 'no question')).rejects.toThrow('ended before it answered')
  await endChild(child)
  await unanswered
  await expect(askChild(child, 'count')).rejects.toThrow('ended before it answered')
  await endChild(child)
})
