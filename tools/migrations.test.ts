import { expect, test } from 'vitest'
import { checkMigrations } from './migrations.ts'

const problemsOf = (text: string, name = '0002-next.sql') => checkMigrations([{ name, text }]).map(({ at, says }) => `${at} ${says}`)

test.each([
  'create table notes (id integer not null);',
  'alter table emails add column note text;',
  "alter table emails add column note text not null default '';",
  'create index notes_by_id on notes (id);',
  'alter table emails alter column note set default 1;',
  'drop index emails_by_tag;',
  'create function f() returns void language plpgsql as $$\nbegin\n  drop table t; -- inside a body\nend\n$$;',
  '-- contract: unused since 0.2\nalter table emails drop column note;',
])('a migration may: %s', (text) => {
  expect(problemsOf(text)).toEqual([])
})

test.each([
  ['drop table notes;', 'drops an object'],
  ['alter table emails drop column note;', 'drops a column'],
  ['alter table emails drop note;', 'drops a column'],
  ['alter table emails rename to mails;', 'renames'],
  ['alter table emails rename column a to b;', 'renames'],
  ['alter table emails\n  alter column note type bigint;', 'changes the type'],
  ['alter table emails alter note set not null;', 'forbids null'],
  ['alter table emails add column note text not null;', 'adds a column without a default'],
  ['truncate notes;', 'deletes rows'],
])('a migration must not: %s', (text, says) => {
  expect(problemsOf(`-- why\n${text}`)).toEqual([expect.stringContaining(`0002-next.sql:2 ${says}`)])
})

test('the first migration creates everything and is not checked', () => {
  expect(problemsOf('drop table notes;', '0001-initial.sql')).toEqual([])
})
