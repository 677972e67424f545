/** The dialog that pauses a recipient domain. */
import { useState } from 'react'
import { post } from '../api-client.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { FormDialog } from './action-dialogs.tsx'
import { Field } from './form-controls.tsx'

const words = texts.queue

/** `destination`: filled in; empty: the person names it. */
export function PauseDialog({ destination, onClose, onDone }: { destination: string; onClose: () => void; onDone: () => Promise<void> }) {
  const { tenantId } = useHere()
  const [name, setName] = useState(destination)
  const [reason, setBecause] = useState('')
  return (
    <FormDialog
      title={words.pauseOne(tenantId)}
      action={words.pause(tenantId)}
      run={() => post('/dashboard/api/queue/pause', { destination: name.trim(), ...(reason ? { reason } : {}) })}
      onDone={async () => {
        onClose()
        await onDone()
      }}
      onClose={onClose}
    >
      <Field label={words.destination} help={words.pauseHelp} required value={name} onChange={(event) => setName(event.target.value)} />
      <Field label={words.reason} maxLength={200} value={reason} onChange={(event) => setBecause(event.target.value)} />
    </FormDialog>
  )
}
