/** The envelopes of all answers under /v1 (contract section 2): success, page, error. */

import Type, { type TSchema } from 'typebox'
import { type Refusal, refusals } from '#base'
import { jsonInSteps } from './json-in-steps.ts'

export const jsonType = 'application/json; charset=utf-8'

export interface Page<Item> {
  items: readonly Item[]
  page: number
  perPage: number
  /** All matches, on every page. */
  total: number
}

export function success(data: unknown, requestId: string): string {
  return `{"success":true,"data":${JSON.stringify(data)},"meta":{"requestId":"${requestId}"}}`
}

/** As `success`, encoded in steps. */
export const largeSuccess = (data: unknown, requestId: string): Promise<Buffer> =>
  jsonInSteps(data, '{"success":true,"data":', `,"meta":{"requestId":"${requestId}"}}`)

export const page = (shown: Page<unknown>, requestId: string): string =>
  `{"success":true,"data":${JSON.stringify(shown.items)}${endOfPage(shown, requestId)}`

/** As `page`, encoded in steps. */
export const largePage = (shown: Page<unknown>, requestId: string): Promise<Buffer> =>
  jsonInSteps(shown.items, '{"success":true,"data":', endOfPage(shown, requestId))

function endOfPage({ page: number, perPage, total }: Page<unknown>, requestId: string): string {
  const totalPages = Math.ceil(total / perPage)
  return `,"page":${number},"perPage":${perPage},"total":${total},"totalPages":${totalPages},"meta":{"requestId":"${requestId}"}}`
}

export function failure(refusal: Refusal, requestId: string): string {
  return JSON.stringify({ success: false, error: errorOf(refusal), meta: { requestId } })
}

/** The object in `error`, and in each failed element of a batch. */
export function errorOf({ code, message, suggestion, field, details }: Refusal) {
  return { code, message, suggestion, ...(field === undefined ? {} : { field }), ...(details === undefined ? {} : { details }) }
}

const Meta = Type.Object({ requestId: Type.String({ pattern: '^req_[A-Za-z0-9_-]{16,24}$' }) })

export const successOf = (data: TSchema) => Type.Object({ success: Type.Unsafe<true>({ type: 'boolean', enum: [true] }), data, meta: Meta })

export const pageOf = (item: TSchema) =>
  Type.Object({
    success: Type.Unsafe<true>({ type: 'boolean', enum: [true] }),
    data: Type.Array(item),
    page: Type.Integer({ minimum: 1 }),
    perPage: Type.Integer({ minimum: 1, maximum: 100 }),
    total: Type.Integer({ minimum: 0 }),
    totalPages: Type.Integer({ minimum: 0 }),
    meta: Meta,
  })

/** `codes` defaults to all codes. */
export const ErrorObject = (codes: readonly string[] = Object.keys(refusals)) =>
  Type.Object({
    code: Type.Unsafe<string>({ type: 'string', enum: codes }),
    message: Type.String({ description: 'For humans; may change' }),
    suggestion: Type.String({ minLength: 1 }),
    field: Type.Optional(Type.String({ description: 'JSON path of the first invalid field, such as `to[3]`' })),
    details: Type.Optional(
      Type.Array(Type.Object({ field: Type.String(), message: Type.String() }), { description: 'All invalid fields, at most 20' }),
    ),
  })

export const failureOf = (codes: readonly string[]) =>
  Type.Object({ success: Type.Unsafe<false>({ type: 'boolean', enum: [false] }), error: ErrorObject(codes), meta: Meta })
