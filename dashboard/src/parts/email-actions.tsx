/** Actions on the selected emails of a list. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { post } from '../api-client.ts'
import type { ListedEmail } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Button } from './basic-components.tsx'
import { BulkBar, type Selection } from './data-table.tsx'
import { toast } from './toast.tsx'

const words = texts.emails.bulk
const retryable: readonly string[] = ['softfail', 'hardfail', 'bounced']

interface BulkAction {
  name: string
  run: (email: ListedEmail) => Promise<unknown>
}

export function EmailActions({ selection, emails }: { selection: Selection; emails: readonly ListedEmail[] }) {
  const { mayChange, member } = useHere()
  const client = useQueryClient()
  const chosen = emails.filter(({ id }) => selection.chosen.has(id))
  const acting = useMutation({
    /** One request after the other: a session may make 50 a second, and each email answers for itself. */
    mutationFn: async ({ name, run }: BulkAction) => {
      let failed = 0
      for (const email of chosen) await run(email).catch(() => failed++)
      toast(words.done(name, chosen.length - failed, failed))
      selection.onChange(new Set())
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['emails'] }),
  })
  const copyIds = () =>
    void navigator.clipboard.writeText(chosen.map(({ id }) => id).join('\n')).then(
      () => toast(words.copied(chosen.length)),
      () => undefined,
    )
  const button = (name: string, isUseful: boolean, run: BulkAction['run']) => (
    <Button small disabled={!isUseful || acting.isPending} onClick={() => acting.mutate({ name, run })}>
      {name}
    </Button>
  )
  const suppress = ({ to, tenantId }: ListedEmail) =>
    post('/v1/suppressions', { address: to, reason: texts.email.reason(member.address), tenantId })
  return (
    <BulkBar selection={selection}>
      {mayChange && (
        <>
          {button(
            words.retry,
            chosen.some(({ status }) => retryable.includes(status)),
            ({ id }) => post(`/v1/emails/${id}/retry`),
          )}
          {button(
            words.release,
            chosen.some(({ status }) => status === 'held'),
            ({ id }) => post(`/dashboard/api/emails/${id}/release`),
          )}
          {button(words.suppress, true, suppress)}
        </>
      )}
      <Button small onClick={copyIds}>
        {words.copyIds}
      </Button>
    </BulkBar>
  )
}
