import { expect, test } from 'vitest'
import { hostsOf } from './database-hosts.ts'

test('each host of an address becomes an address of its own, in order, with login, database and options', () => {
  expect(hostsOf('postgres://me:p%40ss@h1:5432,h2,[::1]:6543/mail?sslmode=verify-full')).toEqual([
    { name: 'h1:5432', url: 'postgres://me:p%40ss@h1:5432/mail?sslmode=verify-full' },
    { name: 'h2', url: 'postgres://me:p%40ss@h2/mail?sslmode=verify-full' },
    { name: '[::1]:6543', url: 'postgres://me:p%40ss@[::1]:6543/mail?sslmode=verify-full' },
  ])
})

test('a unix socket has no host before the path', () => {
  const url = 'postgres://me:secret@/mail?host=%2Frun%2Fpg'
  expect(hostsOf(url)).toEqual([{ name: 'the unix socket', url }])
})

test('a wrong address is refused without repeating its password', () => {
  for (const url of ['mysql://me:secret@h/d', 'postgres://me:secret@h1,,h2/d', 'postgres://me:secret@h1:port/d', 'me:secret@h']) {
    expect(() => hostsOf(url)).toThrow(/^(?!.*secret).*DATABASE_URL/)
  }
})
