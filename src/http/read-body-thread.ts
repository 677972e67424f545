/** Worker thread that parses large bodies. Parsing takes a millisecond for a small body and seconds for the worst body of 64 MiB. */
import { Refusal, type RefusalCode, serveTasks } from '#base'
import { type HeldBody, holdBody } from '#request-logs'
import { type FormKind, type FormLimits, readFormFields } from './form-fields.ts'
import type { JsonBounds } from './json-limits.ts'
import { parseJson } from './parse-json.ts'
import { fingerprint } from './v1/request-fingerprint.ts'

export interface LargeBody {
  /** The first `size` bytes are the body. */
  octets: ArrayBuffer
  size: number
  bounds: JsonBounds
  /** undefined: the body is JSON. */
  form: { kind: FormKind; limits: FormLimits } | undefined
  /** The method and path that the fingerprint covers; null: no fingerprint is wanted. */
  fingerprintOf: { method: string; path: string } | null
}

export interface ReadBody {
  held: HeldBody
  read: { body: unknown; fingerprint: Uint8Array | null } | { refused: { code: RefusalCode; message: string; suggestion: string } }
}

serveTasks((task: LargeBody): { result: ReadBody } => {
  const octets = Buffer.from(task.octets, 0, task.size)
  const { form, bounds } = task
  let held = form ? { ...holdBody(Buffer.alloc(0)), size: octets.length } : holdBody(octets)
  try {
    const read = form ? readFormFields(octets, form.kind, form.limits) : { body: parseJson(octets, bounds) }
    if ('shown' in read) held = { ...holdBody(read.shown), size: octets.length }
    const { body } = read
    const { fingerprintOf } = task
    return {
      result: { held, read: { body, fingerprint: fingerprintOf && fingerprint(fingerprintOf.method, fingerprintOf.path, body) } },
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const { code, message, suggestion } = error
    return { result: { held, read: { refused: { code, message, suggestion } } } }
  }
})
