/**
 * A full disk under the tables that a request writes, while the transaction log still has room: PostgreSQL keeps running and refuses
 * writes.
 */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, mkdtempSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { openDb, sql } from '#db'
import { databaseAt } from '../support/database-url.ts'
import { type Service, startService } from '../support/in-process-service.ts'

const serverProcess = sql<{ pid: number }>`
  select pg_backend_pid() as pid`
const ownName = sql<{ name: string }>`
  select current_database()::text as name`
const partitionsOfContents = sql<{ name: string }>`
  select inhrelid::regclass::text as name
  from pg_inherits
  where inhparent = 'contents'::regclass`

const mebibyte = 1_048_576

/** A disk of 16 MiB that PostgreSQL may write to. Only root can create one. */
async function smallDisk() {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-small-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', folder])
  const admin = await openDb({ url: databaseAt(inject('serverUrl'), 'postgres'), poolSize: 1, applicationName: 'tests' })
  const owner = statSync(`/proc/${(await admin.first(serverProcess))?.pid}`)
  chownSync(folder, owner.uid, owner.gid)
  const name = `small_${process.pid}`
  await admin.script(`create tablespace ${name} location '${folder}'`)
  const filler = join(folder, 'filler')
  return {
    name,
    admin,
    fill() {
      let size = 8 * mebibyte
      while (size >= 1) {
        try {
          writeFileSync(filler, Buffer.alloc(size), { flag: 'a' })
        } catch {
          size = Math.floor(size / 2)
        }
      }
    },
    free: () => rmSync(filler),
    async remove() {
      await admin.script(`drop tablespace ${name}`)
      await admin.close()
      execFileSync('umount', [folder])
      rmdirSync(folder)
    },
  }
}

const email = {
  from: 'a@simulator.test',
  to: ['delivered@simulator.test'],
  subject: 'Large enough to need room of its own',
  text: randomBytes(150_000).toString('base64'),
}

const readiness = async (service: Service) => {
  const answer = await fetch(`http://127.0.0.1:${service.port}/readyz`)
  return { status: answer.status, ...((await answer.json()) as object) }
}

test.skipIf(process.getuid?.() !== 0)(
  'a full disk is reported as not ready before a request fails on it, and as ready once there is room',
  async () => {
    const service = await startService({ rateLimit: null, sendLimit: null })
    const disk = await smallDisk()
    try {
      for (const { name } of await service.db.rows(partitionsOfContents))
        await service.db.script(`alter table ${name} set tablespace ${disk.name}`)
      // Applies to sessions opened after this statement.
      const own = (await service.db.first(ownName))?.name
      await service.db.script(`alter database ${own} set default_tablespace = ${disk.name}`)
      await disk.admin.script(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${own}'`)
      const post = () => service.call('POST', '/emails', { key: service.testKey, body: email })
      // A request may still meet a connection that was ended just now.
      await expect.poll(async () => (await post()).status).toBe(200)
      expect(await readiness(service)).toMatchObject({ status: 'ready', database: 'reachable' })

      disk.fill()
      await expect.poll(() => readiness(service)).toMatchObject({ status: 'not ready', database: 'full' })
      const refused = await post()
      expect(refused).toMatchObject({ status: 500, body: { error: { code: 'internal_error' } } })
      expect(refused.body.error?.message).toContain('disk')
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(refused.headers.get('x-should-retry')).toBe('true')

      disk.free()
      await expect.poll(() => readiness(service)).toMatchObject({ status: 'ready', database: 'reachable' })
      expect((await post()).status).toBe(200)
    } finally {
      await service.stop()
      await disk.remove()
    }
  },
)
