/** Labelled fields and menus of forms. */
import { type InputHTMLAttributes, type ReactNode, type TextareaHTMLAttributes, useId, useState } from 'react'
import { texts } from '../texts.ts'
import { useZone } from '../time-zone.ts'
import { Button } from './basic-components.tsx'
import { DownIcon } from './icons.tsx'

const control =
  'min-h-8 w-full rounded-md border border-edge/60 bg-paper px-2.5 py-1 text-sm text-ink placeholder:text-soft hover:border-edge pointer-coarse:min-h-10'

/** `bare`: the label is only for screen readers, because the placeholder says it. */
type FieldProps = { label: string; help?: string; beside?: ReactNode; bare?: boolean } & InputHTMLAttributes<HTMLInputElement>

export function Field({ label, help, beside, bare = false, ...rest }: FieldProps) {
  const id = useId()
  const isTime = rest.type === 'datetime-local'
  const about = [isTime && `${id}-zone`, help && `${id}-help`].filter(Boolean).join(' ')
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <div className={bare ? 'sr-only' : 'flex justify-between gap-2 text-xs text-soft'}>
        <label htmlFor={id} className="font-medium">
          {label}
        </label>
        {isTime && <Zone id={`${id}-zone`} />}
      </div>
      <div className="flex gap-2">
        <input id={id} {...rest} {...(about ? { 'aria-describedby': about } : {})} className={control} />
        {beside}
      </div>
      {help && (
        <p id={`${id}-help`} className="text-xs text-soft">
          {help}
        </p>
      )}
    </div>
  )
}

/** The zone of a time that a person writes. */
const Zone = ({ id }: { id: string }) => (
  <span id={id} className="min-w-0 truncate">
    {useZone()}
  </span>
)

/** `bare`: the label is only for screen readers, because it is written above. */
type TextAreaProps = { label: string; help?: string; bare?: boolean } & TextareaHTMLAttributes<HTMLTextAreaElement>

/** Source text. */
export function TextArea({ label, help, bare = false, ...rest }: TextAreaProps) {
  const id = useId()
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className={bare ? 'sr-only' : 'text-xs font-medium text-soft'}>
        {label}
      </label>
      <textarea
        id={id}
        spellCheck={false}
        autoCapitalize="none"
        {...rest}
        {...(help ? { 'aria-describedby': `${id}-help` } : {})}
        className={`${control} font-mono text-xs`}
      />
      {help && (
        <p id={`${id}-help`} className="text-xs text-soft">
          {help}
        </p>
      )}
    </div>
  )
}

/** With a button that shows the password. */
export function PasswordField(props: { label: string; help?: string } & InputHTMLAttributes<HTMLInputElement>) {
  const [shown, setShown] = useState(false)
  const show = <Button onClick={() => setShown(!shown)}>{shown ? texts.hide : texts.show}</Button>
  // In a text field, browsers would send the input to a spelling service, and phones would capitalise its first letter.
  const asItIs = { spellCheck: false, autoCapitalize: 'none', autoCorrect: 'off' }
  return <Field {...props} {...asItIs} type={shown ? 'text' : 'password'} beside={show} />
}

interface Choice {
  value: string
  label: string
}

/** One of a few values that need a sentence each. */
export function Choices(props: {
  legend: string
  value: string
  choices: readonly (Choice & { about: string })[]
  onChange: (value: string) => void
}) {
  const name = useId()
  return (
    <fieldset>
      <legend className="mb-1 text-xs font-medium text-soft">{props.legend}</legend>
      <div className="divide-y divide-line overflow-hidden rounded-md border border-line">
        {props.choices.map(({ value, label, about }) => (
          <label
            key={value}
            className="flex cursor-pointer items-start gap-2.5 px-3 py-2 text-sm hover:bg-sheet has-[:checked]:bg-accent-back"
          >
            <input
              type="radio"
              name={name}
              value={value}
              checked={value === props.value}
              onChange={() => props.onChange(value)}
              className="mt-0.5 size-4 shrink-0 accent-accent"
            />
            <span>
              <span className="font-medium">{label}</span>
              <span className="block text-xs text-soft">{about}</span>
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

interface SelectProps {
  label: string
  value: string
  choices: readonly Choice[]
  onChange: (value: string) => void
  /** The label is only for screen readers: the choices explain themselves. */
  bare?: boolean
}

export function Select({ label, value, choices, onChange, bare = false }: SelectProps) {
  const id = useId()
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className={bare ? 'sr-only' : 'text-xs font-medium text-soft'}>
        {label}
      </label>
      <div className="relative">
        <select
          id={id}
          value={value}
          onChange={(event) => onChange(event.target.value)}
          className={`${control} appearance-none pr-7 ${bare ? 'border-line' : ''}`}
        >
          {choices.map((one) => (
            <option key={one.value} value={one.value}>
              {one.label}
            </option>
          ))}
        </select>
        <DownIcon size={14} className="pointer-events-none absolute top-1/2 right-2 -translate-y-1/2 text-soft" />
      </div>
    </div>
  )
}
