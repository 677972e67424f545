/** The refusals that an endpoint declares, and those that every endpoint may return. */
import type { RefusalCode } from '#base'
import type { Endpoint } from './define-endpoint.ts'

const everywhere: readonly RefusalCode[] = [
  'authentication_required',
  'invalid_api_key',
  'expired_api_key',
  'credential_on_hold',
  'permission_denied',
  'rate_limit_exceeded',
  'validation_error',
  'invalid_json',
  'invalid_content_type',
  'payload_too_large',
  'internal_error',
]

/** Every code an endpoint may answer with. */
export const refusalsOf = (endpoint: Pick<Endpoint, 'refuses'>): RefusalCode[] => [...new Set([...everywhere, ...endpoint.refuses])]
