/** The MariaDB of an import from a dump, with a client that cannot run. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#base'
import { loadDump } from '../../src/imports/scratch-mariadb.ts'
import { missingMariaDb } from '../support/mariadb.ts'

test.skipIf(missingMariaDb() !== undefined)('a client that cannot be started is a problem of the import', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-client-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'mariadb'), '#!/absent/interpreter\n')
  chmodSync(join(folder, 'mariadb'), 0o755)
  const dump = join(folder, 'postal.sql')
  writeFileSync(dump, 'select 1;\n')
  const loading = loadDump(dump, { clock: systemClock, path: folder, progress: () => undefined })
  await expect(loading).rejects.toThrow(/cannot load .*postal\.sql: .*ENOENT/)
})
