/**
 * A field for source text: numbered lines that do not wrap, and marks for tags and Liquid. The field has no colours of its own; the same text
 * lies above it, of the same size, and lets every click through.
 */
import { Fragment, type ReactNode, useId } from 'react'

/** Of longer text, the marks would cost more than a keystroke may take. */
const maxMarked = 60_000
/** Each mark is short, so that the search is linear: an open brace without an end costs a bounded look ahead. */
const liquid = /(\{\{[^{}]{0,300}\}\}|\{%[^{}]{0,300}%\})/
const tag = /(<!?\/?[A-Za-z-][^<>]{0,500}>)/

/** The odd parts of a text that is split are those that the expression captured. */
const Marked = ({ text, by, className, children }: MarkedProps) =>
  text.split(by).map((part, index) => {
    const shown = children ? children(part) : part
    return index % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text have no names
      <span key={index} className={className}>
        {shown}
      </span>
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text have no names
      <Fragment key={index}>{shown}</Fragment>
    )
  })

interface MarkedProps {
  text: string
  by: RegExp
  className: string
  children?: (part: string) => ReactNode
}

/** Liquid also inside of tags, such as in the address of a link. */
function Source({ text }: { text: string }) {
  if (text.length > maxMarked) return text
  return (
    <Marked text={text} by={tag} className="text-soft">
      {(part) => <Marked text={part} by={liquid} className="text-accent" />}
    </Marked>
  )
}

interface SourceEditorProps {
  label: string
  help: string
  value: string
  readOnly: boolean
  onChange: (value: string) => void
}

export function SourceEditor({ label, help, value, readOnly, onChange }: SourceEditorProps) {
  const id = useId()
  const lines = value.split('\n').length
  return (
    <>
      <div className="source h-56 resize-y overflow-auto rounded-md border border-edge/60 bg-paper font-mono text-xs hover:border-edge md:h-[26rem] pointer-coarse:text-lg">
        <div className="source-body">
          <pre aria-hidden="true" className="source-lines">
            {Array.from({ length: lines }, (_, index) => index + 1).join('\n')}
          </pre>
          <div className="source-text">
            <textarea
              aria-label={label}
              aria-describedby={id}
              wrap="off"
              spellCheck={false}
              autoCapitalize="none"
              readOnly={readOnly}
              value={value}
              onChange={({ target }) => onChange(target.value)}
            />
            <pre aria-hidden="true">
              <Source text={value} />
              {'\n'}
            </pre>
          </div>
        </div>
      </div>
      <p id={id} className="mt-1 text-xs text-soft">
        {help}
      </p>
    </>
  )
}
