/** The source of a template as it is edited, and the values of its variables: a field for each declared one. */
import { useState } from 'react'
import type { TemplatesCreateData, TemplatesListVersionsItem } from '../api-types.ts'
import { texts } from '../texts.ts'
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

export const draftOf = ({
  subject,
  html,
  text,
  variables,
}: Pick<TemplatesCreateData, 'subject' | 'html' | 'text' | 'variables'>): Draft => ({
  subject,
  html: html ?? '',
  text: text ?? '',
  variables: JSON.stringify(variables, null, 2),
})

/** As the service takes it: an empty part is absent. */
export const sourceOf = ({ subject, html, text, variables }: Draft) => ({
  subject,
  html: html === '' ? null : html,
  text: text === '' ? null : text,
  variables: objectIn(variables),
})

type Declared = TemplatesCreateData['variables']

export function declaredIn({ variables }: Draft): Declared {
  try {
    return objectIn(variables) as Declared
  } catch {
    return {}
  }
}

/** The JSON stays as it is while it is no object. */
export function ValueFields({ declared, values, onValues }: { declared: Declared; values: string; onValues: (values: string) => void }) {
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

/** "name Ann · number 7": the given values, and the defaults of the others. */
export function valuesInWords(draft: Draft, values: string): string {
  const given = safely(values)
  return Object.entries(declaredIn(draft))
    .map(([name, one]) => `${name} ${written(given[name] ?? one.default) || '–'}`)
    .join(' · ')
    .slice(0, maxInWords)
}
const maxInWords = 200

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

/** Publishing such a draft would make a version without a change. */
export function sameAsPublished(template: TemplatesCreateData, versions: readonly TemplatesListVersionsItem[]): boolean {
  const published = versions.find(({ version }) => version === template.publishedVersion)
  return published !== undefined && JSON.stringify(draftOf(published)) === JSON.stringify(draftOf(template))
}
