/** Preformatted text whose JSON has colours: names soft, texts green, other values blue. Other text, and a long one, stays plain. */
import type { ReactNode } from 'react'

/** Colours cost an element for each name and value. */
const maxColoured = 30_000
const token = /("(?:[^"\\\n]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b/g

/** In valid JSON each string ends, so that the search is linear. */
function isJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === 'object'
  } catch {
    return false
  }
}

function coloured(text: string): ReactNode {
  if (text.length > maxColoured || !isJson(text)) return text
  const parts: ReactNode[] = []
  let end = 0
  for (const found of text.matchAll(token)) {
    const [whole, quoted, colon] = found
    parts.push(
      text.slice(end, found.index),
      <span key={found.index} className={colon !== undefined ? 'text-soft' : quoted === undefined ? 'text-accent' : 'text-good'}>
        {whole}
      </span>,
    )
    end = found.index + whole.length
  }
  parts.push(text.slice(end))
  return parts
}

/** Focusable by keyboard because it may scroll. */
export const JsonText = ({ label, children }: { label: string; children: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable
  <section aria-label={label} tabIndex={0} className="max-h-[36rem] overflow-auto rounded-md bg-sheet p-3 ring-1 ring-line ring-inset">
    <pre className="font-mono text-xs whitespace-pre-wrap [overflow-wrap:anywhere]">{coloured(children)}</pre>
  </section>
)
