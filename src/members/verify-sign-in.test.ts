import { expect, test } from 'vitest'
import { openIds, openSecrets, systemRandom } from '#base'
import { openDevices } from './verify-sign-in.ts'

test('a caller with a secret that was replaced makes no devices with it', () => {
  const ids = openIds(systemRandom)
  const devicesOf = (secrets: ReturnType<typeof openSecrets>) => openDevices({ ids, secrets })
  const member = { id: 7, address: 'ann@house.test' }
  const token = devicesOf(openSecrets('the old one', systemRandom)).make(member)
  const secrets = openSecrets('the old one', systemRandom)
  expect(devicesOf(secrets).known(token, member.address)).toEqual({ name: token.slice(0, 22), memberId: 7 })
  secrets.use('the new one', ['the old one'])
  expect(devicesOf(secrets).known(token, member.address)).toBeUndefined()
  expect(devicesOf(secrets).known(devicesOf(secrets).make(member), member.address)).toMatchObject({ memberId: 7 })
})
