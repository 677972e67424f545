/** Limits the public exponent of RSA keys that others publish. */
import type { KeyObject } from 'node:crypto'

/**
 * The time of a verification grows with the length of the exponent, which the owner of a key chooses. RFC 8301 does not limit it. Keys in use
 * have 3 or 65537, and other verifiers refuse longer ones: Go takes at most 31 bits, Windows 32.
 */
const maxExponent = 2n ** 32n

/** Whether an RSA key of a stranger may be used; true for a key of another algorithm. */
export const hasUsualExponent = (key: KeyObject): boolean => (key.asymmetricKeyDetails?.publicExponent ?? 0n) <= maxExponent
