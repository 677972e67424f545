/** WebCrypto: global everywhere except in Node 18, where it is in a module. */
type WebCrypto = typeof globalThis.crypto

export async function webCrypto(): Promise<WebCrypto> {
  if ((globalThis as { crypto?: WebCrypto }).crypto) return globalThis.crypto
  // In a variable, so that bundlers for browsers and the edge do not include it.
  const module = 'node:crypto'
  return ((await import(module)) as { webcrypto: WebCrypto }).webcrypto
}

/** 32 hexadecimal digits. Not `randomUUID`, which browsers have only on pages with https. */
export async function randomKey(): Promise<string> {
  const octets = (await webCrypto()).getRandomValues(new Uint8Array(16))
  return Array.from(octets, (octet) => octet.toString(16).padStart(2, '0')).join('')
}
