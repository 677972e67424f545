/** The letters of the large run: the same for the same number, of every size and form that people send. */

export interface Letter {
  number: number
  to: string[]
  cc: string[]
  bcc: string[]
  subject: string
  text: string | undefined
  html: string | undefined
  attachments: { filename: string; contentType: string; content: Buffer }[]
}

const words =
  'Bestellung unterwegs Grüße danke 東京 ваш заказ order shipped from the warehouse . .. naïve 🚚 price 9,99 € =3D =20 café'.split(' ')
const kb = 1024
const mb = kb * kb

/** The nth letter, to the domains in turn. Of 1000: 2 of 5 to 12 MB, 20 over 100 KB, 2 to 150 recipients; the median is 10 KB. */
export function letter(number: number, domains: readonly string[]): Letter {
  const next = numbersFrom(number + 1)
  const place = number % 1000
  const isHuge = place === 250 || place === 750
  const isLarge = place % 50 === 7
  const isWide = place === 100 || place === 600
  const size = isWide ? kb : isLarge ? 100 * kb + (next() % (200 * kb)) : Math.round(10 * kb * 4 ** ((next() % 2001) / 1000 - 1))
  const form = isHuge ? 3 : isWide ? 0 : number % 4
  const at = (index: number) => domains[index % domains.length] ?? ''
  const group = (name: string) => (isWide ? Array.from({ length: 50 }, (_, index) => `${name}${number}-${index}@${at(index)}`) : [])
  const text = prose(size, next)
  return {
    number,
    to: isWide ? group('to') : [`n${number}@${at(number)}`],
    cc: group('cc'),
    bcc: group('bcc'),
    subject: `Nr. ${number}: ${Array.from({ length: next() % 20 }, () => words[next() % words.length]).join(' ')} ü`,
    text: form === 1 ? undefined : form === 3 ? 'See the file.' : text,
    html: form === 1 || form === 2 ? `<html><body><p>${text.replaceAll('\n', '</p>\n<p>')}</p></body></html>` : undefined,
    attachments: form === 3 ? files(isHuge ? 5 * mb + (next() % (7 * mb)) : size, next) : [],
  }
}

/** One file, or two where one would exceed the API's limit. */
function files(size: number, next: () => number): Letter['attachments'] {
  const sizes = size > 8 * mb ? [8 * mb, size - 8 * mb] : [size]
  return sizes.map((length, index) => {
    const content = Buffer.alloc(length)
    for (let at = 0; at + 4 <= length; at += 4) content.writeUInt32LE(next(), at)
    return { filename: `Rechnung № ${index + 1}.pdf`, contentType: 'application/pdf', content }
  })
}

/** Text of about `size` octets, in lines of every length, some far over 998, some starting with dots. */
function prose(size: number, next: () => number): string {
  const parts: string[] = []
  for (let length = 0; length < size; ) {
    const draw = next() % 400
    const part = draw < 30 ? '\n' : draw === 30 ? 'x'.repeat(1500) : `${words[draw % words.length]} `
    parts.push(part)
    length += part.length
  }
  return `${parts.join('')}.`
}

/** xorshift32: whole numbers from 0 to 2^32 - 1. */
function numbersFrom(seed: number): () => number {
  let state = Math.imul(seed, 2_654_435_761) | 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state >>> 0
  }
}
