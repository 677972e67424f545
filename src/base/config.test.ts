import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { readConfig } from './config.ts'

describe('POSTRIDER_HTTPS', () => {
  const on = { POSTRIDER_HTTPS: 'on', POSTRIDER_PUBLIC_URL: 'https://app.example.com', POSTRIDER_HOSTNAME: 'mail.example.com' }

  test('is off by default, and then no URL is refused', () => {
    expect(readConfig({}).https).toBe(false)
    expect(readConfig({ POSTRIDER_PUBLIC_URL: 'http://192.0.2.1' }).https).toBe(false)
  })

  test('takes the standard ports and the usual CA', () => {
    expect(readConfig(on)).toMatchObject({
      https: true,
      httpsHost: undefined,
      httpsPort: 443,
      httpPort: 80,
      acmeDirectory: 'https://acme-v02.api.letsencrypt.org/directory',
    })
  })

  test.each([
    undefined,
    'http://app.example.com',
    'https://192.0.2.1',
    'https://[2001:db8::1]',
    'https://localhost',
    'https://app.localhost',
  ])('is refused in one sentence with the public URL %s', (url) => {
    expect(() => readConfig({ ...on, POSTRIDER_PUBLIC_URL: url })).toThrow(
      /^POSTRIDER_HTTPS=on needs a POSTRIDER_PUBLIC_URL with https and a public host name, such as https:\/\/mail\.example\.com: ".*" is not one$/,
    )
  })

  test('needs a public host name for the SMTP listeners, unless they have files or run elsewhere', () => {
    const local = { ...on, POSTRIDER_HOSTNAME: 'machine7' }
    expect(() => readConfig(local)).toThrow('POSTRIDER_HTTPS=on needs a public host name in POSTRIDER_HOSTNAME')
    expect(readConfig({ ...local, POSTRIDER_TLS_CERT: 'c.pem', POSTRIDER_TLS_KEY: 'k.pem' }).https).toBe(true)
    expect(readConfig({ ...local, POSTRIDER_ROLES: 'api' }).https).toBe(true)
    expect(readConfig({ ...on, POSTRIDER_PUBLIC_URL: undefined, POSTRIDER_ROLES: 'inbound' }).https).toBe(true)
  })

  test.each([
    ['POSTRIDER_HTTPS', 'yes'],
    ['POSTRIDER_HTTPS_PORT', '70000'],
    ['POSTRIDER_ACME_DIRECTORY', 'http://ca.example.com'],
    ['POSTRIDER_ACME_CONTACT', 'operator'],
  ])('%s=%s is refused', (name, value) => {
    expect(() => readConfig({ ...on, [name]: value })).toThrow(`${name}: "${value}" is not`)
  })
})

describe('POSTRIDER_MTA_STS', () => {
  const https = { POSTRIDER_HTTPS: 'on', POSTRIDER_PUBLIC_URL: 'https://app.example.com', POSTRIDER_HOSTNAME: 'mail.example.com' }

  test('is off by default', () => {
    expect(readConfig(https).mtaSts).toBe('off')
    expect(readConfig({ ...https, POSTRIDER_MTA_STS: 'enforce' }).mtaSts).toBe('enforce')
    expect(() => readConfig({ ...https, POSTRIDER_MTA_STS: 'on' })).toThrow('POSTRIDER_MTA_STS: "on" is not')
  })

  test('needs a server that can serve the policy, at a public name', () => {
    expect(() => readConfig({ POSTRIDER_MTA_STS: 'testing' })).toThrow('POSTRIDER_MTA_STS=testing needs POSTRIDER_HTTPS=on')
    expect(() => readConfig({ ...https, POSTRIDER_ROLES: 'api', POSTRIDER_HOSTNAME: 'machine7', POSTRIDER_MTA_STS: 'testing' })).toThrow(
      'POSTRIDER_MTA_STS=testing needs a public host name in POSTRIDER_HOSTNAME: "machine7" is not one',
    )
  })
})

describe('a secret in a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-config-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const fileOf = (text: string) => {
    const file = join(folder, 'secret')
    writeFileSync(file, text)
    return file
  }

  test('is read without its line ending', () => {
    const file = fileOf('sixteen characters\n')
    expect(readConfig({ POSTRIDER_SECRET_FILE: file }).secret).toBe('sixteen characters')
    expect(readConfig({ POSTRIDER_SECRET_NEW_FILE: file }).newSecret).toBe('sixteen characters')
  })

  test.each(['POSTRIDER_SECRET_FILE', 'POSTRIDER_SECRET_NEW_FILE', 'DATABASE_URL_FILE', 'POSTRIDER_OIDC_CLIENT_SECRET_FILE'])(
    'is refused if %s is empty, as after a crash or a failed command',
    (name) => {
      const file = fileOf('\n')
      expect(() => readConfig({ [name]: file })).toThrow(`${name}: ${file} is empty`)
    },
  )

  test('is as long as one in the environment', () => {
    for (const name of ['POSTRIDER_SECRET_FILE', 'POSTRIDER_SECRET_NEW_FILE'])
      expect(() => readConfig({ [name]: fileOf('fifteen letters') })).toThrow(/16/)
  })
})
