/** Hexadecimal digits as octets, for decoders that read a form octet by octet. */

/** The value of a hexadecimal digit; -1 for another octet. */
export function hexDigitOf(octet: number | undefined): number {
  if (octet === undefined) return -1
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30
  const letter = octet | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
