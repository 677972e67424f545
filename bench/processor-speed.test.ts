import { expect, test } from 'vitest'
import { ProcessorSpeed } from './processor-speed.ts'

test('a fixed computation takes some processor time, at once and after each second', async () => {
  using speed = new ProcessorSpeed()
  expect(speed.take()).toBeGreaterThan(0)
  expect(speed.take()).toBeGreaterThan(0)
})
