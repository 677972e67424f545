/** The actions of a scheduled email until it leaves: reschedule and cancel. Both concern all recipients of the message. */
import { useState } from 'react'
import { patch, post } from '../api-client.ts'
import type { Email } from '../api-types.ts'
import { texts } from '../texts.ts'
import { zoneNow } from '../time-zone.ts'
import { Confirm, FormDialog } from './action-dialogs.tsx'
import { Button } from './basic-components.tsx'
import { Field } from './form-controls.tsx'
import { fieldOf, instantOf } from './zoned-times.ts'

const words = texts.email

export const isScheduled = ({ status, explanation }: Email) => status === 'pending' && explanation.blockedBy === 'scheduled'

export function ScheduledActions({ email, refresh }: { email: Email; refresh: () => Promise<void> }) {
  const [open, setOpen] = useState<'reschedule' | 'cancel'>()
  const close = () => setOpen(undefined)
  const done = async () => {
    close()
    await refresh()
  }
  return (
    <>
      <Button onClick={() => setOpen('reschedule')}>{words.reschedule}</Button>
      <Button onClick={() => setOpen('cancel')}>{words.cancel}</Button>
      {open === 'reschedule' && <Reschedule email={email} onDone={done} onClose={close} />}
      {open === 'cancel' && (
        <Confirm
          title={words.cancelTitle(email.to)}
          text={words.cancelScheduledText}
          action={words.cancel}
          run={() => post(`/v1/emails/${email.id}/cancel`)}
          onDone={done}
          onClose={close}
        />
      )}
    </>
  )
}

function Reschedule({ email, onDone, onClose }: { email: Email; onDone: () => unknown; onClose: () => void }) {
  const [local, setLocal] = useState(() => fieldOf(zoneNow(), email.scheduledAt ? Date.parse(email.scheduledAt) : Date.now()))
  return (
    <FormDialog
      title={words.rescheduleTitle(email.to)}
      action={words.reschedule}
      run={() => patch(`/v1/emails/${email.id}`, { scheduledAt: instantOf(zoneNow(), local)?.toISOString() ?? local })}
      onDone={onDone}
      onClose={onClose}
    >
      <Field
        label={words.scheduledAt}
        help={words.rescheduleHelp}
        type="datetime-local"
        required
        value={local}
        onChange={({ target }) => setLocal(target.value)}
      />
    </FormDialog>
  )
}
