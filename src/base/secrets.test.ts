import { describe, expect, test } from 'vitest'
import { systemRandom } from './ids.ts'
import { openSecrets } from './secrets.ts'

const secrets = openSecrets('one', systemRandom)
const plain = Buffer.from('what must not be read')

describe('a sealed value', () => {
  test('opens under its name, its purpose and its secret, and no other', () => {
    const sealed = secrets.sealer('logs').seal('row 1', plain)
    expect(sealed.includes(plain)).toBe(false)
    expect(secrets.sealer('logs').open('row 1', sealed)).toEqual(plain)
    expect(() => secrets.sealer('logs').open('row 2', sealed)).toThrow()
    expect(() => secrets.sealer('others').open('row 1', sealed)).toThrow()
    expect(() => secrets.open('row 1', sealed)).toThrow()
    expect(() => openSecrets('two', systemRandom).sealer('logs').open('row 1', sealed)).toThrow()
  })

  test('that was changed does not open', () => {
    const sealed = secrets.seal('row', plain)
    for (const at of sealed.keys()) {
      const changed = Buffer.from(sealed)
      changed[at] = (changed[at] as number) ^ 1
      expect(() => secrets.open('row', changed)).toThrow()
    }
  })

  test('has a nonce that no other has', () => {
    const nonces = Array.from({ length: 2000 }, () => secrets.seal('row', plain).toString('hex', 5, 17))
    expect(new Set(nonces).size).toBe(nonces.length)
  })

  test('of a secret before opens after a change of secrets, and nothing more is sealed or signed with it', () => {
    const [old, now] = [openSecrets('the old one', systemRandom), openSecrets('the old one', systemRandom)]
    const sealed = old.seal('row', plain)
    const unmarked = Buffer.concat([Buffer.of(1), sealed.subarray(5)])
    now.use('the new one', ['the old one'])
    for (const one of [sealed, unmarked]) expect(now.open('row', one)).toEqual(plain)
    expect(now.fingerprint).toBe(openSecrets('the new one', systemRandom).fingerprint)
    expect(now.macs('x', 'y')).toContainEqual(old.mac('x', 'y'))
    expect(now.mac('x', 'y')).not.toEqual(old.mac('x', 'y'))
    expect(() => old.open('row', now.seal('row', plain))).toThrow('made with another POSTRIDER_SECRET')
    expect(openSecrets('the new one', systemRandom).open('row', now.seal('row', plain))).toEqual(plain)
    expect(now.seal('row', plain).subarray(0, 5)).toEqual(now.mark)
    now.use('the new one', [])
    expect(() => now.open('row', sealed)).toThrow()
  })
})
