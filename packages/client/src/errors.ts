/** Error classes: refused, not reached, timed out, not genuine. */
import type { ErrorCode } from './generated-types.ts'

export class PostriderError extends Error {
  override name = 'PostriderError'
}

export interface Refused {
  status: number
  code: ErrorCode
  message: string
  suggestion: string
  /** JSON path of the first invalid field, such as `to[3]`. */
  field?: string | undefined
  /** Every invalid field. */
  details?: readonly { field: string; message: string }[] | undefined
  requestId: string
  /** Milliseconds to wait before a retry, if the service stated it. */
  retryAfterMs?: number | undefined
}

/** The service refused the request. Programs should use `code`; `message` and `suggestion` are for people. */
export class ApiError extends PostriderError {
  override name = 'ApiError'
  readonly status: number
  readonly code: ErrorCode
  readonly suggestion: string
  readonly field: string | undefined
  readonly details: readonly { field: string; message: string }[]
  readonly requestId: string
  readonly retryAfterMs: number | undefined

  constructor({ status, code, message, suggestion, field, details = [], requestId, retryAfterMs }: Refused) {
    super(message)
    this.status = status
    this.code = code
    this.suggestion = suggestion
    this.field = field
    this.details = details
    this.requestId = requestId
    this.retryAfterMs = retryAfterMs
  }
}

/** 400 */
export class ValidationError extends ApiError {
  override name = 'ValidationError'
}
/** 401 */
export class AuthenticationError extends ApiError {
  override name = 'AuthenticationError'
}
/** 403 */
export class PermissionError extends ApiError {
  override name = 'PermissionError'
}
/** 404 */
export class NotFoundError extends ApiError {
  override name = 'NotFoundError'
}
/** 429 */
export class RateLimitError extends ApiError {
  override name = 'RateLimitError'
}
/** 5xx, from the service or a proxy in front of it. */
export class ServerError extends ApiError {
  override name = 'ServerError'
}

/** No response: it is unknown whether the request was carried out. */
export class ConnectionError extends PostriderError {
  override name = 'ConnectionError'
}
/** No response in time. */
export class TimeoutError extends ConnectionError {
  override name = 'TimeoutError'
}

/** The webhook is not genuine and must be ignored. */
export class WebhookVerificationError extends PostriderError {
  override name = 'WebhookVerificationError'
}

const classes: Readonly<Record<number, new (refused: Refused) => ApiError>> = {
  400: ValidationError,
  401: AuthenticationError,
  403: PermissionError,
  404: NotFoundError,
  429: RateLimitError,
}

export function errorOf(refused: Refused): ApiError {
  const Kind = classes[refused.status] ?? (refused.status >= 500 ? ServerError : ApiError)
  return new Kind(refused)
}
