/** Dialogs with an action: each sends its request, shows an error, and closes through its caller. */
import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { texts } from '../texts.ts'
import { Button, Problem } from './basic-components.tsx'
import { Dialog } from './dialog.tsx'
import { Code, Copy } from './time-and-copy.tsx'

interface Doing<Made> {
  title: string
  action: string
  run: () => Promise<Made>
  onDone: (made: Made) => unknown
  onClose: () => void
}

/** A form with a submit button. An error goes away with the next edit. */
export function FormDialog<Made>({ title, action, run, onDone, onClose, children }: Doing<Made> & { children: ReactNode }) {
  const doing = useMutation({ mutationFn: run, onSuccess: onDone })
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          doing.mutate()
        }}
        onChange={() => doing.isError && doing.reset()}
        className="flex flex-col gap-4"
      >
        {children}
        <Problem error={doing.error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{texts.actions.cancel}</Button>
          <Button kind="main" type="submit" disabled={doing.isPending}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** Asks for confirmation before an action that cannot be undone. */
export function Confirm<Made>({ title, text, action, run, onDone, onClose }: Doing<Made> & { text: string }) {
  const doing = useMutation({ mutationFn: run, onSuccess: onDone })
  return (
    <Dialog title={title} onClose={onClose}>
      <p className="mb-4 text-sm">{text}</p>
      <Problem error={doing.error} />
      <div className="mt-4 flex justify-end gap-2">
        <Button onClick={onClose}>{texts.actions.cancel}</Button>
        <Button kind="danger" disabled={doing.isPending} onClick={() => doing.mutate()}>
          {action}
        </Button>
      </div>
    </Dialog>
  )
}

/** Shows a secret once. */
export const Once = (props: { title: string; text: string; secret: string; copy: string; onClose: () => void; children?: ReactNode }) => (
  <Dialog title={props.title} onClose={props.onClose}>
    <p className="mb-3 text-sm">{props.text}</p>
    <Code>{props.secret}</Code>
    {props.children}
    <div className="mt-4 flex justify-end gap-2">
      <Copy text={props.secret} label={props.copy} />
      <Button kind="main" onClick={props.onClose}>
        {texts.actions.done}
      </Button>
    </div>
  </Dialog>
)

/** Multiple choice among a few values. */
export const Several = (props: { legend: string; choices: readonly string[]; chosen: string[]; onChange: (chosen: string[]) => void }) => (
  <fieldset>
    <legend className="text-sm font-medium">{props.legend}</legend>
    {props.choices.map((one) => (
      <label key={one} className="flex items-center gap-2 py-0.5 text-sm">
        <input
          type="checkbox"
          checked={props.chosen.includes(one)}
          onChange={({ target }) => props.onChange(target.checked ? [...props.chosen, one] : props.chosen.filter((other) => other !== one))}
        />
        {one}
      </label>
    ))}
  </fieldset>
)
