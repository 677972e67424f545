/** Finds a text in the whole database, whose tables it asks for: a new table is searched too. */
import { type Db, sql } from '#db'

const tables = sql<{ name: string }>`
  select relname as name
  from pg_class
  where relkind in ('r', 'p') and not relispartition and relnamespace = 'public'::regnamespace
  order by relname`

/** The tables, with rows of any tenant, whose text contains this one (lower case, without quotation marks). */
export async function tablesWith(db: Db, text: string): Promise<string[]> {
  const found: string[] = []
  for (const { name } of await db.rows(tables)) {
    const asked = `do $$ begin
      if exists (select from "${name}" as one where position('${text}' in lower(replace(one::text, '%40', '@'))) > 0) then
        raise exception 'found';
      end if; end $$`
    await db.script(asked).catch((error: Error) => {
      if (error.message !== 'found') throw error
      found.push(name)
    })
  }
  return found
}
