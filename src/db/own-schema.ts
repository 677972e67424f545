/**
 * The schema with Postrider's tables: `public`, or one of the role's own. On a managed server a role may have no rights on `public`.
 */
import { sql } from './sql-tag.ts'

/** An oid. Without tables yet, it is the schema in which the role creates them. */
export const ownSchema = sql.part`
  coalesce((select relnamespace from pg_class where oid = to_regclass('migrations')), current_schema()::regnamespace)`
