/** Webhooks: create, enable, disable. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, post } from '../api-client.ts'
import { type Webhook, type WebhooksListData, webhookEvents } from '../api-types.ts'
import { FormDialog, Several } from '../parts/action-dialogs.tsx'
import { Button, Empty, Field, Heading, Problem } from '../parts/basic-components.tsx'
import { RowLink } from '../parts/paged-lists.tsx'
import { WebhookBadge, WebhookState } from '../parts/webhook-state.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.webhooks

export function WebhooksPage() {
  const { scoped, mayChange, tenantId, ofAll, nameOf } = useHere()
  const [adding, setAdding] = useState(false)
  const path = scoped('/v1/webhooks', ofAll)
  const { data, error } = useQuery({ queryKey: ['webhooks', path], queryFn: () => get<WebhooksListData>(path) })
  return (
    <>
      <Heading title={texts.pages.webhooks}>
        {mayChange && (
          <Button kind="main" onClick={() => setAdding(true)}>
            {words.add}
          </Button>
        )}
      </Heading>
      <Problem error={error} />
      {data?.webhooks.length === 0 && <Empty>{words.empty}</Empty>}
      <ul className="divide-y divide-line">
        {data?.webhooks.map((one) => (
          <RowLink
            key={one.id}
            to={`/webhooks/${one.id}`}
            left={
              <>
                <span className="block font-medium">{one.name}</span>
                <span className="block text-soft">{one.url}</span>
                <WebhookState webhook={one} />
              </>
            }
            right={
              <>
                {tenantId === undefined && nameOf(one.tenantId)} <WebhookBadge webhook={one} />
              </>
            }
          />
        ))}
      </ul>
      {adding && <AddWebhook onClose={() => setAdding(false)} />}
    </>
  )
}

function AddWebhook({ onClose }: { onClose: () => void }) {
  const { inBody } = useHere()
  const [name, setName] = useState('')
  const [url, setUrl] = useState('')
  const [events, setEvents] = useState<string[]>([])
  const navigate = useNavigate()
  return (
    <FormDialog
      title={words.addTitle}
      action={texts.actions.add}
      run={() => post<Webhook>('/v1/webhooks', { name, url, ...(events.length === 0 ? { allEvents: true } : { events }), ...inBody })}
      onDone={({ id }) => navigate({ to: '/webhooks/$webhookId', params: { webhookId: id }, search: {} })}
      onClose={onClose}
    >
      <Field label={words.name} required value={name} onChange={(event) => setName(event.target.value)} />
      <Field
        label={words.url}
        type="url"
        required
        value={url}
        onChange={(event) => setUrl(event.target.value)}
        placeholder={words.example}
      />
      <Several legend={words.events} choices={webhookEvents} chosen={events} onChange={setEvents} />
    </FormDialog>
  )
}
