import type { Reply } from './types.ts'

const replyLine = /^([2-5]\d\d)(?:([ -])(.*))?$/s
const enhancedCode = /^([245]\.\d{1,3}\.\d{1,3})(?:\s|$)/
export function replyReader() {
  let rest = ''
  let lines: string[] = []
  let code = ''
  return {
    push(packet: Buffer): Reply[] | undefined {
      const replies: Reply[] = []
      const text = rest + packet.toString('latin1')
      let from = 0
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
        const line = text.slice(from, end > from && text.charCodeAt(end - 1) === 13 ? end - 1 : end)
        from = end + 1
        const parsed = replyLine.exec(line)
        if (!parsed || (code !== '' && parsed[1] !== code) || lines.length > 100) return undefined
        code = parsed[1] as string
        lines.push(line)
        if (parsed[2] === '-') continue
        replies.push({
          code: Number(code),
          enhanced: enhancedCode.exec((lines[0] as string).slice(4))?.[1] ?? null,
          text: lines.join('\n'),
        })
        lines = []
        code = ''
      }
      rest = text.slice(from)
      return rest.length > 2048 ? undefined : replies
    },
  }
}
export function transcript(begin = '') {
  const lines: string[] = begin === '' ? [] : [begin]
  return {
    said: (line: string) => void lines.push(`C: ${line}`),
    heard: (text: string) => void lines.push(`S: ${text}`),
    note: (text: string) => void lines.push(`(${text})`),
    toString: () => lines.join('\n').slice(0, 8192),
  }
}
export type Transcript = ReturnType<typeof transcript>
