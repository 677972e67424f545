/** Signs on this thread instead of a worker thread, so that the order of events is fixed. Import it before the engine. */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const { sign } = crypto

type Done = (error: Error | null, signature?: Buffer) => void

crypto.sign = ((algorithm: string, data: Buffer, key: crypto.KeyLike, done?: Done) => {
  const signature = sign(algorithm, data, key)
  if (done === undefined) return signature
  queueMicrotask(() => done(null, signature))
  return undefined
}) as typeof crypto.sign
syncBuiltinESMExports()
