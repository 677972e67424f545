import { expect, test } from 'vitest'
import { systemClock } from '#base'
import { Suspensions } from './suspensions.ts'

test('a suspension that was renewed is among the newest 2000', () => {
  const suspensions = new Suspensions<string>(systemClock)
  const add = (key: string) => suspensions.add(key, key, 60_000)
  for (let nth = 1; nth <= 2000; nth++) add(`${nth}.test`)
  add('1.test')
  add('new.test')
  const listed = suspensions.list()
  expect(listed).toHaveLength(2000)
  expect(listed).toEqual(expect.arrayContaining(['1.test', 'new.test']))
  expect(listed).not.toContain('2.test')
})
