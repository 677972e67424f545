/** The secret in a data directory without one, with one, and with the empty file that a power cut can leave. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { openIds, readConfig, systemRandom } from '#base'
import { givenSecrets } from '#installation'

const ids = openIds(systemRandom)
let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postrider-secret-'))
  file = join(folder, 'secret')
  onTestFinished(() => rmSync(folder, { recursive: true }))
})

const given = () => givenSecrets(readConfig({ POSTRIDER_DATA: folder }), ids)[0]

test('is created once, readable by its owner only', () => {
  const secret = given()
  expect(secret).toHaveLength(43)
  expect(readFileSync(file, 'utf8')).toBe(secret)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(given()).toBe(secret)
})

test('is created in place of an empty file while there is no database', () => {
  writeFileSync(file, '')
  const secret = given()
  expect(secret).toHaveLength(43)
  expect(given()).toBe(secret)
})

test('is not replaced beside a database: an empty file is refused by its name', () => {
  mkdirSync(join(folder, 'postgres'))
  writeFileSync(file, '\n')
  expect(given).toThrow(`${file} is missing or empty`)
  expect(readFileSync(file, 'utf8')).toBe('\n')
})
