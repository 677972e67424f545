/** WebCrypto: global everywhere but in Node 18, where a module has it. */
type WebCrypto = typeof globalThis.crypto

export async function webCrypto(): Promise<WebCrypto> {
  if ((globalThis as { crypto?: WebCrypto }).crypto) return globalThis.crypto
  // In a variable, so that bundlers for browsers and the edge do not follow it.
  const module = 'node:crypto'
  return ((await import(module)) as { webcrypto: WebCrypto }).webcrypto
}

export const randomUuid = async (): Promise<string> => (await webCrypto()).randomUUID()
