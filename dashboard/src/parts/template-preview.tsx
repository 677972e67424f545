/**
 * The preview of a template, which follows the source while it is written: the values of the variables, and the rendered message in a frame
 * that cannot run scripts. The service renders the source without storing it.
 */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useId, useRef, useState } from 'react'
import { post } from '../api-client.ts'
import type { RenderedTemplateResponse } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Button, Problem, Section } from './basic-components.tsx'
import { TextArea } from './form-controls.tsx'
import { DownIcon } from './icons.tsx'
import { type FrameLook, PreviewFrame } from './preview-frame.tsx'
import { type Draft, declaredIn, objectIn, sourceOf, ValueFields, valuesInWords } from './template-values.tsx'

const words = texts.templates
/** Without a keystroke. */
const quietMs = 500

interface PreviewProps {
  draft: Draft
  /** JSON of the values of a send. */
  values: string
  onValues: (values: string) => void
}

export function TemplatePreview({ draft, values, onValues }: PreviewProps) {
  const [isJson, setJson] = useState(false)
  const [isOpen, setOpen] = useState(Object.values(declaredIn(draft)).some((one) => one.default === undefined))
  const { shown, fault, error } = useRendered(draft, values)
  return (
    <Section title={words.preview}>
      <div className="flex flex-col gap-3">
        <details
          open={isOpen}
          onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
          className="group rounded-lg border border-line"
        >
          <summary className="flex min-h-9 items-center gap-2 px-3 text-sm">
            <DownIcon size={14} className="shrink-0 -rotate-90 text-soft group-open:rotate-0" />
            <span className="shrink-0 font-medium">{words.values}</span>
            <span className="min-w-0 truncate text-xs text-soft group-open:hidden">{valuesInWords(draft, values)}</span>
          </summary>
          <div className="px-3 pb-3">
            <div className="mb-2 flex justify-end">
              <Button small kind="quiet" onClick={() => setJson(!isJson)}>
                {isJson ? words.asFields : words.asJson}
              </Button>
            </div>
            {isJson ? (
              <TextArea
                label={words.valuesJson}
                help={words.valuesHelp}
                rows={4}
                value={values}
                onChange={({ target }) => onValues(target.value)}
              />
            ) : (
              <ValueFields declared={declaredIn(draft)} values={values} onValues={onValues} />
            )}
          </div>
        </details>
        <Problem error={error} />
        <p role="status" className="text-sm text-wait empty:hidden">
          {fault}
        </p>
        {shown && (
          <div className="min-w-0">
            <p className="mb-2 text-sm [overflow-wrap:anywhere]">
              <span className="text-soft">{words.names.subject}:</span> <span className="font-medium">{shown.subject}</span>
            </p>
            <PreviewFrame height="editor">{(look) => <Rendered key={shown.source} source={shown.source} look={look} />}</PreviewFrame>
          </div>
        )}
      </div>
    </Section>
  )
}

/** The text of the draft and its values as the service takes them; the words of the fault if they are no JSON. */
function bodyOf(draft: Draft, values: string): { body: string } | { fault: string } {
  try {
    return { body: JSON.stringify({ ...sourceOf(draft), values: objectIn(values) }) }
  } catch (error) {
    return { fault: error instanceof Error ? error.message : words.notJson }
  }
}

interface Rendering {
  subject: string
  source: string
}

function useRendered(draft: Draft, values: string) {
  const wanted = JSON.stringify(bodyOf(draft, values))
  const [settled, setSettled] = useState(wanted)
  useEffect(() => {
    const timeout = setTimeout(() => setSettled(wanted), quietMs)
    return () => clearTimeout(timeout)
  }, [wanted])
  const { data, error } = useQuery({
    queryKey: ['template-preview', settled],
    queryFn: async () => {
      const request = JSON.parse(settled) as ReturnType<typeof bodyOf>
      if ('fault' in request) return { fault: request.fault }
      const { subject, fault } = await post<RenderedTemplateResponse>('/dashboard/api/templates/render', JSON.parse(request.body) as object)
      return fault ? { fault: `${fault.message}. ${fault.suggestion}.` } : { rendering: { subject: subject ?? '', source: request.body } }
    },
    retry: false,
    refetchOnWindowFocus: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  // The last message that could be rendered stays in sight.
  const [shown, setShown] = useState<Rendering>()
  useEffect(() => {
    if (data?.rendering) setShown(data.rendering)
  }, [data])
  return { shown, fault: data?.fault, error }
}

/** `isInert`: a picture that the keyboard passes. A form fills the frame, because an address would be too short for the source. A new frame for each source adds nothing to the history. */
export function Rendered({ source, look, isInert = false }: { source: string; look: FrameLook; isInert?: boolean }) {
  const name = useId()
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => form.current?.submit(), [])
  return (
    <>
      <form ref={form} hidden method="post" action="/dashboard/api/templates/preview" target={name}>
        <input type="hidden" name="params" value={source} />
      </form>
      <iframe
        name={name}
        title={words.frame}
        sandbox=""
        referrerPolicy="no-referrer"
        {...(isInert ? { tabIndex: -1, scrolling: 'no' } : {})}
        {...look}
      />
    </>
  )
}
