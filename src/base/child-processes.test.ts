import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('a child for which no file descriptor is free is started again', async () => {
  const script = 'test/support/child-without-descriptors.ts'
  const { stdout } = await promisify(execFile)('bash', ['-c', `ulimit -n 100; exec "${process.execPath}" ${script}`])
  expect(stdout).toBe(`spawn ${process.execPath} EMFILE\nready\n`)
})
