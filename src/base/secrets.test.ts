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
    const nonces = Array.from({ length: 2000 }, () => secrets.seal('row', plain).toString('hex', 1, 13))
    expect(new Set(nonces).size).toBe(nonces.length)
  })
})
