/** The preview of a template: a field for each declared variable, or their JSON, and the rendered message in a frame that cannot run scripts. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { post } from '../api-client.ts'
import type { TemplatesCreateData, TemplatesPreviewData } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Button, Empty, Problem, Section } from './basic-components.tsx'
import { Field, Select, TextArea } from './form-controls.tsx'

const words = texts.templates

export interface Draft {
  subject: string
  html: string
  text: string
  variables: string
}

/** Throws words for the person if the text is not a JSON object. */
export function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text.trim() === '' ? '{}' : text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Reported below.
  }
  throw new Error(words.notJson)
}

type Declared = TemplatesCreateData['variables']

function declaredIn({ variables }: Draft): Declared {
  try {
    return objectIn(variables) as Declared
  } catch {
    return {}
  }
}

/** Whether all variables have a default, by a look at the source: then the preview needs no values. */
function isComplete(draft: Draft): boolean {
  const source = `${draft.subject}\n${draft.html}\n${draft.text}`
  const declared = declaredIn(draft)
  const used = [...source.matchAll(/\{\{-?\s*([A-Za-z_][\w-]*)/g)].map(([, name = '']) => name)
  return !source.includes('{%') && [...used, ...Object.keys(declared)].every((name) => declared[name]?.default !== undefined)
}

interface PreviewProps {
  id: string
  draft: Draft
  /** JSON of the values of a send. */
  values: string
  onValues: (values: string) => void
  /** Saves the draft. */
  before: () => Promise<void>
}

/** Long because the values, the request and the frame are one section. */
export function TemplatePreview({ id, draft, values, onValues, before }: PreviewProps) {
  const { scoped } = useHere()
  const [shown, setShown] = useState(0)
  const [isJson, setJson] = useState(false)
  const declared = declaredIn(draft)
  const render = useMutation({
    mutationFn: async () => {
      await before()
      const variables = objectIn(values)
      const made = await post<TemplatesPreviewData>(scoped(`/v1/templates/${encodeURIComponent(id)}/preview`), { variables })
      setShown((count) => count + 1)
      return { subject: made.subject, variables: JSON.stringify(variables) }
    },
  })
  // Without a request that the log records, until a person asks for one.
  const [atFirst] = useState(() => (isComplete(draft) ? '{}' : undefined))
  const variables = render.data?.variables ?? atFirst
  return (
    <Section
      title={words.preview}
      aside={
        <Button disabled={render.isPending} onClick={() => render.mutate()}>
          {variables ? words.showAgain : words.show}
        </Button>
      }
    >
      <div className="flex flex-col gap-3">
        <div className="rounded-lg border border-line p-3">
          <div className="mb-2 flex items-center justify-between gap-2">
            <p className="text-sm font-medium">{words.values}</p>
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
            <ValueFields declared={declared} values={values} onValues={onValues} />
          )}
        </div>
        <Problem error={render.error} />
        {!variables && !render.error && <Empty>{words.notShown}</Empty>}
        {variables && (
          <div className="overflow-hidden rounded-lg border border-line">
            {render.data && (
              <p className="border-b border-line bg-sheet px-3 py-2 text-sm [overflow-wrap:anywhere]">
                <span className="text-soft">{words.names.subject}:</span> <span className="font-medium">{render.data.subject}</span>
              </p>
            )}
            <iframe
              key={shown}
              title={words.frame}
              sandbox=""
              referrerPolicy="no-referrer"
              src={scoped(`/dashboard/api/templates/${encodeURIComponent(id)}/preview`, { variables })}
              style={{ colorScheme: 'light', background: '#fff' }}
              className="h-[32rem] w-full"
            />
          </div>
        )}
      </div>
    </Section>
  )
}

/** The JSON stays as it is while it is no object. */
function ValueFields({ declared, values, onValues }: { declared: Declared; values: string; onValues: (values: string) => void }) {
  const given = safely(values)
  const names = Object.keys(declared)
  if (names.length === 0) return <p className="text-sm text-soft">{words.noVariables}</p>
  const set = (name: string, value: unknown) => {
    const { [name]: _, ...others } = given
    onValues(JSON.stringify(value === undefined ? others : { ...others, [name]: value }, null, 2))
  }
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      {names.map((name) => (
        <OneValue key={name} name={name} of={declared[name]} value={given[name]} onChange={(value) => set(name, value)} />
      ))}
    </div>
  )
}

const safely = (text: string): Record<string, unknown> => {
  try {
    return objectIn(text)
  } catch {
    return {}
  }
}

const written = (value: unknown) => (value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value))

interface OneValueProps {
  name: string
  of: Declared[string] | undefined
  value: unknown
  onChange: (value: unknown) => void
}

/** An empty field gives no value, so that the default applies. */
function OneValue({ name, of, value, onChange }: OneValueProps) {
  const usual = of?.default
  const placeholder = usual === undefined ? words.needed : words.usually(written(usual))
  if (of?.type === 'boolean') {
    const choices = [
      { value: '', label: placeholder },
      { value: 'true', label: 'true' },
      { value: 'false', label: 'false' },
    ]
    return (
      <Select
        label={name}
        value={written(value)}
        choices={choices}
        onChange={(chosen) => onChange(chosen === '' ? undefined : chosen === 'true')}
      />
    )
  }
  if (of?.type === 'array' || of?.type === 'object') return <JsonValue name={name} value={value} help={placeholder} onChange={onChange} />
  const isNumber = of?.type === 'number'
  return (
    <Field
      label={name}
      type={isNumber ? 'number' : 'text'}
      {...(isNumber ? { step: 'any' } : {})}
      placeholder={placeholder}
      value={written(value)}
      onChange={({ target }) => onChange(target.value === '' ? undefined : isNumber ? Number(target.value) : target.value)}
    />
  )
}

/** Text that is not yet JSON stays in the field and changes no value. */
function JsonValue({ name, value, help, onChange }: { name: string; value: unknown; help: string; onChange: (value: unknown) => void }) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value))
  const change = (next: string) => {
    setText(next)
    if (next.trim() === '') return onChange(undefined)
    try {
      onChange(JSON.parse(next))
    } catch {
      // The person is still typing.
    }
  }
  return <TextArea label={words.jsonOf(name)} help={help} rows={2} value={text} onChange={({ target }) => change(target.value)} />
}
