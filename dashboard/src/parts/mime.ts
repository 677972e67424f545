/** Parses a message into a tree of parts with their headers and sizes. Bounded in depth and number for any input. */

export interface MimePart {
  type: string
  about: string
  octets: number
  parts: MimePart[]
}

const maxDepth = 20
const maxParts = 200

/** `message`: octets as latin1 text. */
export const mimeTree = (message: string): MimePart => readPart(message, 0, { left: maxParts })

function readPart(text: string, depth: number, budget: { left: number }): MimePart {
  budget.left--
  const blank = /\r?\n\r?\n/.exec(text)
  const head = (blank ? text.slice(0, blank.index) : text).replace(/\r?\n[ \t]+/g, ' ')
  const body = blank ? text.slice(blank.index + blank[0].length) : ''
  const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, 'im').exec(head)?.[1]?.trim() ?? ''
  const contentType = field('content-type')
  const [type = ''] = contentType.split(';')
  const boundary = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(contentType)
  const part: MimePart = {
    type: type.trim().toLowerCase() || 'text/plain',
    about: [field('content-disposition'), field('content-transfer-encoding'), contentType.slice(type.length + 1).trim()]
      .filter((one) => one !== '')
      .join(' · '),
    octets: body.length,
    parts: [],
  }
  const mark = boundary?.[1] ?? boundary?.[2]
  if (!part.type.startsWith('multipart/') || mark === undefined || depth >= maxDepth) return part
  const between = `\n${body}`.split(`\n--${mark}`).slice(1)
  for (const one of between) {
    if (one.startsWith('--') || budget.left <= 0) break
    part.parts.push(readPart(one.replace(/^[^\n]*\n/, ''), depth + 1, budget))
  }
  return part
}
