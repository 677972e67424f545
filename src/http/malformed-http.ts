/**
 * Answers invalid HTTP and requests that did not arrive in time: writes the parser's error to the raw socket in the API's envelope, then
 * closes the connection.
 */
import type { Duplex } from 'node:stream'
import { Refusal } from '#base'
import { failure, jsonType } from './v1/response-envelope.ts'

const refusals: Readonly<Record<string, () => Refusal>> = {
  ERR_HTTP_REQUEST_TIMEOUT: () =>
    new Refusal('validation_error', {
      message: 'the request did not arrive in time',
      suggestion: 'Send the whole request within one minute',
      shouldRetry: true,
    }),
  HPE_HEADER_OVERFLOW: () =>
    new Refusal('payload_too_large', { message: 'the headers are larger than 16 KiB', suggestion: 'Send fewer or shorter headers' }),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: () =>
    new Refusal('payload_too_large', { message: 'the chunk extensions are too large', suggestion: 'Send chunks without extensions' }),
}

/** `headers` are added to those of every answer. */
export function answerBrokenRequest(
  error: { code?: string },
  socket: Duplex,
  facts: { requestId: string; headers: Record<string, string> },
): void {
  if (error.code === 'ECONNRESET' || !socket.writable || answerHasBegun(socket) || isUnused(socket)) {
    socket.destroy()
    return
  }
  const refusal =
    refusals[error.code ?? '']?.() ??
    new Refusal('validation_error', {
      message: 'not an HTTP/1.1 request',
      suggestion: 'Use an HTTP client, with http instead of https on this port',
    })
  const body = failure(refusal, facts.requestId)
  const headers = {
    ...facts.headers,
    'x-request-id': facts.requestId,
    'content-type': jsonType,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${refusal.status} Bad Request\r\n${lines.join('')}\r\n${body}`, () => socket.destroy())
}

/** Browsers open connections ahead. A response on an unused one would be taken for the answer to the request being sent. */
const isUnused = (socket: Duplex) => (socket as Duplex & { bytesRead?: number }).bytesRead === 0

/** Whether Node is already writing an answer on this socket; a second one in its middle would be read as part of it. */
function answerHasBegun(socket: Duplex): boolean {
  const { _httpMessage: answer } = socket as Duplex & { _httpMessage?: { headersSent?: boolean } | null }
  return answer?.headersSent === true
}
