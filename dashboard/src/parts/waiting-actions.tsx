/** Actions on the selected emails of the queue: retry now, and cancel. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { post } from '../api-client.ts'
import { texts } from '../texts.ts'
import { Confirm } from './action-dialogs.tsx'
import { Button } from './basic-components.tsx'
import { BulkBar, type Selection } from './data-table.tsx'
import { toast } from './toast.tsx'

const words = texts.waiting.bulk

/** `onDone`: loads the list again. */
export function WaitingActions({ selection, onDone }: { selection: Selection; onDone: () => Promise<void> }) {
  const [isCancelling, setCancelling] = useState(false)
  const ids = [...selection.chosen]
  /** One request after the other, because each email answers for itself: it may have been delivered since. */
  const onEach = async (name: string, pathOf: (id: string) => string) => {
    let failed = 0
    for (const id of ids) await post(pathOf(id)).catch(() => failed++)
    toast(words.done(name, ids.length - failed, failed))
    selection.onChange(new Set())
    await onDone()
  }
  const retrying = useMutation({ mutationFn: () => onEach(words.retry, (id) => `/v1/emails/${id}/retry`) })
  return (
    <>
      <BulkBar selection={selection}>
        <Button small disabled={retrying.isPending} onClick={() => retrying.mutate()}>
          {words.retry}
        </Button>
        <Button small kind="danger" onClick={() => setCancelling(true)}>
          {words.cancel}
        </Button>
      </BulkBar>
      {isCancelling && (
        <Confirm
          title={words.cancelTitle(ids.length)}
          text={words.cancelText}
          action={words.cancel}
          run={() => onEach(words.cancel, (id) => `/dashboard/api/emails/${id}/cancel`)}
          onDone={() => setCancelling(false)}
          onClose={() => setCancelling(false)}
        />
      )}
    </>
  )
}
