/** Signs on this thread instead of beside it, so that what follows has its place in the order of things. Imported before the engine is. */
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
