/**
 * A readable transcript of a conversation, line by line: `C: ` for Postrider, `S: ` for the peer. Promises: at most 8 KB, and no secrets.
 */

export interface Transcript {
  client(line: string): void
  server(replyText: string): void
  note(text: string): void
  readonly text: string
}

const maxCharacters = 8192
const cutMark = '(cut)'

export function openTranscript(beginning = ''): Transcript {
  const lines: string[] = beginning === '' ? [] : [beginning]
  let size = beginning.length
  let isCut = false

  const add = (line: string) => {
    if (isCut) return
    if (size + line.length + 1 > maxCharacters - cutMark.length) {
      isCut = true
      lines.push(cutMark)
      return
    }
    size += line.length + 1
    lines.push(line)
  }

  return {
    client: (line) => add(`C: ${line}`),
    server: (replyText) => add(`S: ${replyText.includes('\n') ? replyText.replaceAll('\n', '\nS: ') : replyText}`),
    note: (text) => add(`(${text})`),
    get text() {
      return lines.join('\n')
    },
  }
}
