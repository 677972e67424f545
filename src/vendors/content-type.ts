/** The content type of an attachment by its name, for APIs whose callers may leave it out. */
import { createRequire } from 'node:module'

const standard = 'application/octet-stream'
/** Loaded when it is first needed: its tables take 8 ms of processor time. */
let types: typeof import('mime') | undefined

export function contentTypeOf(filename: string): string {
  types ??= createRequire(import.meta.url)('mime') as typeof import('mime')
  return types.default.getType(filename) ?? standard
}
