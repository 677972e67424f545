/** Tests the checkers: in a small sample project that passes, each planted fault is found by the intended rule. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { modulesDocument, readModuleHeaders } from './module-headers.ts'
import { checkModules } from './modules.ts'
import { readSource } from './source-files.ts'

const moduleList = {
  modules: ['base', 'mail', 'db', 'emails', 'spool', 'accept', 'inbound', 'http', 'cli'],
  libraries: ['mail'],
  entryPoints: ['inbound', 'http', 'cli'],
  commonCommits: ['src/accept/commit.ts'],
}

const headerText = (owns: string, uses: string, usedBy: string) =>
  `/**\n * A room.\n * Owns: ${owns}. Uses: ${uses}. Used by: ${usedBy}.\n * Promises: nothing.\n */\n`
const sqlTag = 'export const sql = (text: TemplateStringsArray, ..._rest: unknown[]) => text.join("")\n'

/** A sample project without a fault. */
const sound: Record<string, string> = {
  'package.json': '{ "type": "module", "imports": { "#*": "./src/*/*.ts" } }',
  'src/main.ts': "/** Joins. */\nimport { serve } from '#http'\nserve(process.env.PORT)\n",
  'src/base/base.ts': `${headerText('nothing', 'nothing', 'every module')}export { now } from './clock.ts'\nexport type Clock = () => number\n`,
  'src/base/clock.ts': '/** Time. */\nexport const now = () => Date.now()\nexport const at = new Date(0)\n',
  'src/mail/mail.ts': `${headerText('nothing', 'base', 'accept (reads addresses, and more)')}import { now } from '#base'\nexport const parse = () => now()\n`,
  'src/db/db.ts': `${headerText('nothing', 'nothing', 'emails, spool, accept')}${sqlTag}`,
  'src/db/migrations/0001-first.sql':
    '-- Makes all; now() is only a word here.\ncreate table emails (id text);\ncreate table spool (id text);\ncreate table old (id text);\ndrop table old;\ncreate table emails_default partition of emails default;\n',
  'src/emails/emails.ts': `${headerText('emails', 'db', 'accept')}import { sql } from '#db'\nexport const all = sql\`select id, 'spool' as x, 1 as spool -- from spool\n from emails\`\n`,
  'src/spool/spool.ts': `${headerText('spool', 'db, base', 'http')}import type { Clock } from '#base'\nimport { sql } from '#db'\nimport { due } from './due.ts'\nexport const next = (clock: Clock) => [clock(), sql\`select id from spool\`, due]\n`,
  'src/spool/due.ts':
    '/** Due times; not Date.now() but a parameter, "Math.random()". */\nexport const due = (atMs: number) => new Date(atMs)\n',
  'src/accept/accept.ts': `${headerText('nothing', 'db, mail, emails', 'http')}import { all } from '#emails'\nimport { parse } from '#mail'\nimport { both } from './commit.ts'\nexport const accept = () => [all, parse(), both]\n`,
  'src/accept/commit.ts':
    "/** The common commit. */\nimport { sql } from '#db'\nexport const both = sql`insert into spool (id) select id from emails`\n",
  'src/http/http.ts': `${headerText('nothing', 'accept, spool', 'main')}import { accept } from '#accept'\nimport { next } from '#spool'\nexport const serve = (port: unknown) => [port, accept, next]\n`,
}

const roots: string[] = []
afterAll(() => {
  for (const root of roots) rmSync(root, { recursive: true })
})

function build(changes: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), 'modules-'))
  roots.push(root)
  for (const [path, text] of Object.entries({ ...sound, ...changes })) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return root
}

async function faultsOf(changes: Record<string, string>): Promise<string[]> {
  const { problems } = await checkModules(build(changes), moduleList)
  return problems.map(({ rule, at, says }) => `${rule}: ${at} ${says}`)
}

/** `sound[path]` with more text appended. */
const with_ = (path: string, more: string) => ({ [path]: `${sound[path]}${more}` })

test('a source tree without a fault passes, and everything in it was looked at', async () => {
  const report = await checkModules(build({}), moduleList)
  expect(report.problems).toEqual([])
  expect(report.summary).toBe('11 modules, 3 statements, 2 tables')
})

test('an empty source tree does not pass', async () => {
  const root = mkdtempSync(join(tmpdir(), 'modules-'))
  roots.push(root)
  mkdirSync(join(root, 'src'))
  expect((await checkModules(root, moduleList)).problems.map((problem) => problem.rule)).toEqual(['cruise-sees-everything'])
})

describe('a planted fault is found:', () => {
  test.each<[string, Record<string, string>, RegExp]>([
    [
      'a module uses a later module',
      with_('src/db/db.ts', "import { all } from '#emails'\nexport const x = all\n"),
      /^db-looks-up: src\/db\/db\.ts/,
    ],
    [
      'a module uses a type of a later module',
      with_('src/emails/emails.ts', "import type { due } from '#spool'\nexport type X = typeof due\n"),
      /^emails-looks-up/,
    ],
    [
      'a module loads a later module while running',
      with_('src/emails/emails.ts', "export const x = () => import('#spool')\n"),
      /^emails-looks-up/,
    ],
    [
      'a test uses a later module',
      { 'src/emails/emails.test.ts': "import { next } from '#spool'\nnext\n" },
      /^emails-looks-up: src\/emails\/emails\.test\.ts/,
    ],
    [
      'a type is imported in the middle of a line',
      with_('src/emails/emails.ts', "export type X = import('#spool').X\n"),
      /^cruise-sees-everything: src\/emails\/emails\.ts/,
    ],
    [
      'a file behind a public interface is imported',
      with_('src/http/http.ts', "import { due } from '../spool/due.ts'\nexport const x = due\n"),
      /^interface-only: src\/http\/http\.ts/,
    ],
    [
      'main imports a file behind a public interface',
      with_('src/main.ts', "import { due } from './spool/due.ts'\nexport const x = due\n"),
      /^interface-only: src\/main\.ts/,
    ],
    [
      'a folder inside a module imports from the module',
      { 'src/spool/retry/retry.ts': "/** Retries. */\nimport { due } from '../due.ts'\nexport const x = due\n" },
      /^folder-knows-itself: src\/spool\/retry\/retry\.ts/,
    ],
    [
      'an import leads nowhere',
      with_('src/http/http.ts', "import { x } from '#spool/due'\nexport const y = x\n"),
      /^unresolvable: src\/http\/http\.ts/,
    ],
    [
      'two files import each other',
      with_('src/spool/due.ts', "import { next } from './spool.ts'\nexport const x = next\n"),
      /^no-circular: src\/spool\/due\.ts a circle of imports: src\/spool\/spool\.ts → src\/spool\/due\.ts → src\/spool\/spool\.ts$/,
    ],
    [
      'a circle goes over types only',
      {
        'src/spool/a.ts': "/** A. */\nimport type { B } from './b.ts'\nexport type A = B\n",
        'src/spool/b.ts': "/** B. */\nexport type { A as B } from './a.ts'\n",
      },
      /^no-circular: src\/spool\/b\.ts/,
    ],
    [
      'a test helper takes part in a circle',
      {
        'test/a.ts': "/** A. */\nimport { b } from './b.ts'\nawait using x = b\n",
        'test/b.ts': "/** B. */\nexport const b = () => import('./a.ts')\n",
      },
      /^no-circular: test\/b\.ts/,
    ],
    [
      'pages of the dashboard take part in a circle',
      {
        'dashboard/a.tsx': "/** A. */\nimport { b } from './b.tsx'\nexport const A = () => <p>{b}</p>\n",
        'dashboard/b.tsx': "/** B. */\nimport { A } from './a.tsx'\nexport const b = <A />\n",
      },
      /^no-circular: dashboard\/b\.tsx/,
    ],
    [
      'a module imports its own public interface by name',
      with_('src/spool/due.ts', "import { next } from '#spool'\nexport const x = next\n"),
      /^own-interface: src\/spool\/due\.ts/,
    ],
    [
      'a module is not in the list',
      { 'src/utils/utils.ts': '/** Drawer. */\nexport const x = 1\n' },
      /^module-not-in-list: src\/utils\/utils\.ts/,
    ],
    ['a bare file lies in src', { 'src/helpers.ts': '/** Drawer. */\nexport const x = 1\n' }, /^module-not-in-list: src\/helpers\.ts/],
    [
      'a protocol library imports the database driver',
      with_('src/mail/mail.ts', "import pg from 'pg'\nexport const x = pg\n"),
      /^libraries-know-no-store: src\/mail\/mail\.ts/,
    ],
    [
      'a protocol library imports the HTTP framework',
      with_('src/mail/mail.ts', "import f from 'fastify'\nexport const x = f\n"),
      /^libraries-know-no-store: src\/mail\/mail\.ts/,
    ],
    [
      'an entry point knows another entry point',
      { 'src/cli/cli.ts': `${headerText('nothing', 'http', 'main')}import { serve } from '#http'\nexport const x = serve\n` },
      /^only-main-opens-entry-points: src\/cli\/cli\.ts/,
    ],
    [
      'a module opens an entry point',
      with_('src/accept/accept.ts', "import { serve } from '#http'\nexport const x = serve\n"),
      /^only-main-opens-entry-points: src\/accept\/accept\.ts/,
    ],
    [
      'a module imports a role of main',
      { ...with_('src/http/http.ts', "import '../main/api-role.ts'\n"), 'src/main/api-role.ts': '/** A role. */\nexport const x = 1\n' },
      /^main-is-nobodys: src\/http\/http\.ts/,
    ],
    [
      'a role of main imports a file behind a public interface',
      { 'src/main/api-role.ts': "/** A role. */\nimport { due } from '../spool/due.ts'\nexport const x = due\n" },
      /^interface-only: src\/main\/api-role\.ts/,
    ],
    ['a module imports main', with_('src/http/http.ts', "import '../main.ts'\n"), /^main-is-nobodys: src\/http\/http\.ts/],
    [
      'the program imports a tool',
      { ...with_('src/http/http.ts', "import '../../tools/x.ts'\n"), 'tools/x.ts': 'export {}\n' },
      /^src-stands-alone: src\/http\/http\.ts/,
    ],
    [
      'the dashboard imports the program',
      { 'dashboard/app.ts': "import { serve } from '../src/http/http.ts'\nserve(1)\n" },
      /^dashboard-knows-no-src: dashboard\/app\.ts/,
    ],
    [
      'the dashboard runs code of a package',
      {
        'dashboard/app.ts': "import { x } from '../packages/client/x.ts'\nexport const y = x\n",
        'packages/client/x.ts': 'export const x = 1\n',
      },
      /^dashboard-shares-types-only: dashboard\/app\.ts/,
    ],
    [
      'the program needs a development dependency',
      {
        'package.json': '{ "type": "module", "imports": { "#*": "./src/*/*.ts" }, "devDependencies": { "x": "1" } }',
        'node_modules/x/package.json': '{ "name": "x", "main": "x.js" }',
        'node_modules/x/x.js': '',
        ...with_('src/http/http.ts', "import 'x'\n"),
      },
      /^src-runs-without-dev-dependencies: src\/http\/http\.ts/,
    ],
    [
      'a module has no public interface',
      { 'src/inbound/reports.ts': '/** Reports. */\nexport const x = 1\n' },
      /^module-header: src\/inbound\/ has no public interface/,
    ],
    [
      'a public interface has no paragraph',
      { 'src/db/db.ts': `/** The store. */\n${sqlTag}` },
      /^module-header: src\/db\/db\.ts does not open/,
    ],
    [
      'a public interface hides what it uses',
      { 'src/spool/spool.ts': sound['src/spool/spool.ts']?.replace('Uses: db, base', 'Uses: db') ?? '' },
      /^module-header: src\/spool\/spool\.ts uses base, but does not say so/,
    ],
    [
      'a public interface claims to use more than it does',
      { 'src/emails/emails.ts': sound['src/emails/emails.ts']?.replace('Uses: db', 'Uses: db, base') ?? '' },
      /^module-header: src\/emails\/emails\.ts says "Uses: base"/,
    ],
    [
      'a public interface hides who uses it',
      { 'src/db/db.ts': `${headerText('nothing', 'nothing', 'emails, accept')}${sqlTag}` },
      /^module-header: src\/db\/db\.ts is used by spool, but/,
    ],
    [
      'a public interface claims a user it does not have',
      { 'src/db/db.ts': `${headerText('nothing', 'nothing', 'emails, spool, accept, http')}${sqlTag}` },
      /^module-header: src\/db\/db\.ts says "Used by: http"/,
    ],
    [
      'a public interface claims a user that is no module',
      { 'src/db/db.ts': `${headerText('nothing', 'nothing', 'emails, spool, accept, somebody')}${sqlTag}` },
      /which is no module/,
    ],
    [
      'a public interface claims to be used by main',
      { 'src/db/db.ts': `${headerText('nothing', 'nothing', 'emails, spool, accept, main')}${sqlTag}` },
      /says "Used by: main"/,
    ],
    ['a file says nothing about itself', { 'src/spool/due.ts': 'export const due = 1\n' }, /^head: src\/spool\/due\.ts/],
    [
      'the time is asked for',
      with_('src/spool/due.ts', 'export const x = () => Date.now()\n'),
      /^time-is-a-parameter: src\/spool\/due\.ts:3 Date\.now/,
    ],
    ['the time is asked for by index', with_('src/spool/due.ts', "export const x = () => Date['now']()\n"), /^time-is-a-parameter/],
    ['the time is taken apart', with_('src/spool/due.ts', 'const { now } = Date\nexport const x = now\n'), /^time-is-a-parameter/],
    [
      'a date is made of nothing',
      with_('src/spool/due.ts', 'export const x = () => new Date()\n'),
      /^time-is-a-parameter: src\/spool\/due\.ts:3 new Date/,
    ],
    ['a timer is set', with_('src/spool/due.ts', 'setTimeout(() => {}, 1)\n'), /^time-is-a-parameter: src\/spool\/due\.ts:3 setTimeout/],
    ['an interval is set', with_('src/spool/due.ts', 'setInterval(() => {}, 1)\n'), /^time-is-a-parameter/],
    ['a signal is timed', with_('src/spool/due.ts', 'export const x = AbortSignal.timeout(1)\n'), /^time-is-a-parameter/],
    [
      'timers are imported',
      with_('src/spool/due.ts', "import { setTimeout as wait } from 'node:timers/promises'\nawait wait(1)\n"),
      /^time-is-a-parameter: src\/spool\/due\.ts:3 node:timers\/promises/,
    ],
    ['randomness is asked for', with_('src/spool/due.ts', 'export const x = () => Math.random()\n'), /^randomness-is-a-parameter/],
    [
      'random octets are imported',
      with_('src/spool/due.ts', "import { randomBytes as draw } from 'node:crypto'\nexport const x = draw\n"),
      /^randomness-is-a-parameter: src\/spool\/due\.ts:3 randomBytes/,
    ],
    [
      'the environment is read',
      with_('src/mail/mail.ts', 'export const x = process.env.HOME\n'),
      /^environment-is-read-once: src\/mail\/mail\.ts/,
    ],
    [
      'the environment is imported',
      with_('src/mail/mail.ts', "import { env } from 'node:process'\nexport const x = env\n"),
      /^environment-is-read-once/,
    ],
    [
      'a table is named outside its module',
      with_(
        'src/spool/due.ts',
        "import { sql } from '#db'\nexport const x = sql<{ id: string }>`select id from spool join emails using (id)`\n",
      ),
      /^table-owner: src\/spool\/due\.ts:4 names emails, which belongs to emails/,
    ],
    [
      'a table is named in a plain string',
      with_('src/spool/due.ts', "export const x = 'delete from emails'\n"),
      /^table-owner: src\/spool\/due\.ts:3 names emails/,
    ],
    [
      'a table is named in a plain template',
      with_('src/spool/due.ts', 'export const x = (id: string) => `update "emails" set id = ${id}`\n'),
      /^table-owner: src\/spool\/due\.ts:3 names emails/,
    ],
    [
      'a table is named in a fragment',
      with_('src/spool/due.ts', "import { sql } from '#db'\nexport const x = sql`select ${sql`id from emails`}`\n"),
      /^table-owner: src\/spool\/due\.ts:4 names emails/,
    ],
    [
      'a table is named in a part of a statement',
      with_('src/spool/due.ts', "import { sql } from '#db'\nexport const x = sql.part`id in (select id from emails)`\n"),
      /^table-owner: src\/spool\/due\.ts:4 names emails/,
    ],
    ['a table has no owner', { 'src/db/migrations/0002-more.sql': 'create table orphans (id text);' }, /no module owns orphans/],
    [
      'a table has two owners',
      { 'src/spool/spool.ts': sound['src/spool/spool.ts']?.replace('Owns: spool', 'Owns: spool, emails') ?? '' },
      /owns emails, and so does emails/,
    ],
    [
      'a module owns a table that is not there',
      { 'src/spool/spool.ts': sound['src/spool/spool.ts']?.replace('Owns: spool', 'Owns: spool, ghosts') ?? '' },
      /owns ghosts, which no migration makes/,
    ],
    [
      'a statement asks for the time',
      with_('src/spool/due.ts', "import { sql } from '#db'\nexport const x = sql`select id from spool where id < now()`\n"),
      /^statements-take-parameters: src\/spool\/due\.ts:4 now\(/,
    ],
    [
      'a statement asks for the time in capitals',
      with_('src/spool/due.ts', "import { sql } from '#db'\nexport const x = sql`select CURRENT_TIMESTAMP`\n"),
      /^statements-take-parameters/,
    ],
    [
      'a statement draws an id',
      with_('src/spool/due.ts', "import { sql } from '#db'\nexport const x = sql`select gen_random_uuid()`\n"),
      /^statements-take-parameters/,
    ],
    [
      'a common commit asks for the time',
      with_('src/accept/commit.ts', 'export const x = sql`select clock_timestamp()`\n'),
      /^statements-take-parameters: src\/accept\/commit\.ts/,
    ],
    [
      'a name is the verb of a person',
      with_('src/spool/due.ts', 'export const x = (text: string) => {\n  const said = text\n  return said\n}\n'),
      /^identifier: src\/spool\/due\.ts:4 said/,
    ],
    [
      'a column fills itself with the time',
      { 'src/db/migrations/0002-more.sql': 'alter table spool add at timestamptz default now();' },
      /^statements-take-parameters: src\/db\/migrations\/0002-more\.sql/,
    ],
  ])('%s', async (_, changes, expected) => {
    expect(await faultsOf(changes)).toContainEqual(expect.stringMatching(expected))
  })
})

test('a test may measure a duration, but not ask for the time of day', async () => {
  const path = 'src/spool/due.test.ts'
  expect(await faultsOf({ [path]: 'export const x = () => performance.now()\n' })).toEqual([])
  expect(await faultsOf({ [path]: 'export const x = () => Date.now()\n' })).toEqual([expect.stringMatching(/^time-is-a-parameter/)])
})

test('the dashboard shares types with the program and the packages', async () => {
  const changes = {
    'dashboard/app.ts':
      "export type { X } from '../packages/client/x.ts'\nexport type * from '../src/http/dashboard-responses.ts'\nimport type { X as Y } from '../packages/client/x.ts'\nexport type Z = Y\n",
    'packages/client/x.ts': 'export type X = 1\n',
    'src/http/dashboard-responses.ts': '/** Types. */\nexport type Shown = 1\n',
  }
  expect(await faultsOf(changes)).toEqual([])
})

test('a module named by a public interface before it is written is no fault', async () => {
  const { problems } = await checkModules(
    build({ 'src/db/db.ts': `${headerText('nothing', 'nothing', 'emails, spool, accept, inbound')}${sqlTag}` }),
    moduleList,
  )
  expect(problems).toEqual([])
})

test('a file that cannot be parsed stops the check', async () => {
  await expect(checkModules(build({ 'src/spool/due.ts': '/** Broken. */ export const = 1' }), moduleList)).rejects.toThrow(
    'src/spool/due.ts cannot be parsed',
  )
})

test('the document of the source tree holds every public interface in the order of the list', () => {
  const text = modulesDocument(moduleList, readModuleHeaders(moduleList, readSource(build({}))).headers)
  expect(text.match(/^## .*/gm)).toEqual([
    '## base',
    '## mail (protocol library)',
    '## db',
    '## emails',
    '## spool',
    '## accept',
    '## http (entry point)',
  ])
  expect(text).toContain('- Owns: spool\n- Uses: db, base\n- Used by: http\n')
})
