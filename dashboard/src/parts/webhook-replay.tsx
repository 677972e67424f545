/** Sends the recorded events of a time range to a webhook again. */
import { useState } from 'react'
import { post } from '../api-client.ts'
import type { WebhooksReplayData } from '../api-types.ts'
import { texts } from '../texts.ts'
import { zoneNow } from '../time-zone.ts'
import { FormDialog } from './action-dialogs.tsx'
import { Field } from './form-controls.tsx'
import { toast } from './toast.tsx'
import { fieldOf, instantOf } from './zoned-times.ts'

const words = texts.webhook
const dayMs = 86_400_000
/** A field has whole minutes, and the start is exclusive. */
const minuteMs = 60_000

const unixSeconds = (field: string) => Math.floor((instantOf(zoneNow(), field)?.getTime() ?? 0) / 1000)

interface ReplayProps {
  id: string
  /** The start that the form proposes; the day before by default. */
  since?: string
  onDone: () => Promise<void>
  onClose: () => void
}

export function ReplayRange({ id, since, onDone, onClose }: ReplayProps) {
  const [after, setAfter] = useState(() => fieldOf(zoneNow(), since === undefined ? Date.now() - dayMs : Date.parse(since) - minuteMs))
  const [before, setBefore] = useState(() => fieldOf(zoneNow(), Date.now()))
  return (
    <FormDialog
      title={words.replayRangeTitle}
      action={words.replay}
      run={() => post<WebhooksReplayData>(`/v1/webhooks/${id}/replay`, { after: unixSeconds(after), before: unixSeconds(before) })}
      onDone={async ({ queued }) => {
        toast(words.replayedRange(queued))
        onClose()
        await onDone()
      }}
      onClose={onClose}
    >
      <p className="text-sm text-soft">{words.replayRangeText}</p>
      <Field label={words.from} type="datetime-local" required value={after} onChange={({ target }) => setAfter(target.value)} />
      <Field label={words.to} type="datetime-local" required value={before} onChange={({ target }) => setBefore(target.value)} />
    </FormDialog>
  )
}
