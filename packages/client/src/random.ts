/** WebCrypto: global everywhere except in Node 18, where it is in a module. */
type WebCrypto = typeof globalThis.crypto

export async function webCrypto(): Promise<WebCrypto> {
  if ((globalThis as { crypto?: WebCrypto }).crypto) return globalThis.crypto
  // In a variable, so that bundlers for browsers and the edge do not include it.
  const module = 'node:crypto'
  return ((await import(module)) as { webcrypto: WebCrypto }).webcrypto
}

export const randomUuid = async (): Promise<string> => (await webCrypto()).randomUUID()
