/** Maps any error to one of the documented refusals: the statuses that leave the API are a closed set (contract section 1.1). */
import { Refusal, TookTooLong } from '#base'
import { CommitUnknown, DatabaseUnreachable, NotDurable, saysDiskIsFull, sqlState } from '#db'
import { ClientLeft } from './v1/body-memory.ts'

/** The framework's own error codes. */
const frameworkCodes: Readonly<Record<string, () => Refusal>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: () => new Refusal('payload_too_large'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => new Refusal('invalid_content_type'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () =>
    new Refusal('invalid_json', { message: 'the length of the body differs from its Content-Length' }),
  FST_ERR_NOT_FOUND: () => new Refusal('not_found'),
  FST_ERR_BAD_URL: () => new Refusal('not_found', { message: 'the percent-encoding of the path is invalid' }),
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: () => new Refusal('not_found'),
}

/** Returns the refusal to answer with; an unexpected error becomes `internal_error` without details. */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (error instanceof ClientLeft) return new Refusal('invalid_json', { message: 'the connection closed before the end of the body' })
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown }
  const known = typeof code === 'string' ? frameworkCodes[code] : undefined
  if (known) return known()
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500)
    return new Refusal('validation_error', { message: 'the request is invalid' })
  if (error instanceof TookTooLong)
    return new Refusal('rate_limit_exceeded', { message: 'the server is overloaded', shouldRetry: true, retryAfterSeconds: 5 })
  if (saysDiskIsFull(error))
    return new Refusal('internal_error', {
      message: 'the disk of the database is full: the request was not accepted',
      suggestion: 'Repeat the request later. The operator must free disk space',
      shouldRetry: true,
      retryAfterSeconds: 5,
    })
  if (isDatabaseAway(error))
    return new Refusal('internal_error', { message: 'the database is unreachable', shouldRetry: true, retryAfterSeconds: 1 })
  return new Refusal('internal_error')
}

/** Messages of the driver and the socket for a connection lost before its transaction's commit was sent. */
const lostConnection = /^(Connection terminated|Client (has encountered a connection error|was closed))/
const brokenSocket = /^(ECONN|EPIPE|ETIMEDOUT|ENOENT|EHOST|ENET)/

/** Whether the database is unreachable, disconnected, shutting down or full, so that a retry may succeed. */
function isDatabaseAway(error: unknown): boolean {
  if (error instanceof DatabaseUnreachable || error instanceof CommitUnknown || error instanceof NotDurable) return true
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (brokenSocket.test(String(code)) || lostConnection.test(String(message))) return true
  return /^(08|53|57P|25006)/.test(sqlState(error) ?? '')
}

/** Headers for a refusal, in addition to those of every answer. */
export function refusalHeaders({ status, retryAfterSeconds, shouldRetry }: Refusal): Record<string, string> {
  return {
    ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
    ...(shouldRetry === undefined ? {} : { 'x-should-retry': String(shouldRetry) }),
  }
}
