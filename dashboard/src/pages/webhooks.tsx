/** Webhooks: made, switched on and off. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { get, post } from '../api.ts'
import { Badge, Button, Dialog, Empty, Field, Heading, Problem } from '../parts/basics.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { type Webhook, webhookEvents } from '../types.ts'

export function WebhooksPage() {
  const { scoped, mayChange } = useHere()
  const [adding, setAdding] = useState(false)
  const path = scoped('/v1/webhooks')
  const { data, error } = useQuery({ queryKey: ['webhooks', path], queryFn: () => get<{ webhooks: Webhook[] }>(path) })
  return (
    <>
      <Heading title={texts.pages.webhooks}>
        {mayChange && (
          <Button kind="main" onClick={() => setAdding(true)}>
            Add webhook
          </Button>
        )}
      </Heading>
      <Problem error={error} />
      {data?.webhooks.length === 0 && <Empty>No webhooks yet.</Empty>}
      <ul className="divide-y divide-line">
        {data?.webhooks.map((one) => (
          <li key={one.id}>
            <Link
              to="/webhooks/$webhookId"
              params={{ webhookId: one.id }}
              search={{}}
              className="flex flex-wrap items-center justify-between gap-2 px-2 py-3 text-sm hover:bg-sheet"
            >
              <span className="min-w-0">
                <span className="block font-medium">{one.name}</span>
                <span className="block text-soft [overflow-wrap:anywhere]">{one.url}</span>
              </span>
              <Badge tone={one.enabled ? 'good' : 'wait'}>{one.enabled ? 'On' : 'Off'}</Badge>
            </Link>
          </li>
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
  const add = useMutation({
    mutationFn: () => post<Webhook>('/v1/webhooks', { name, url, ...(events.length === 0 ? { allEvents: true } : { events }), ...inBody }),
    onSuccess: ({ id }) => navigate({ to: '/webhooks/$webhookId', params: { webhookId: id }, search: {} }),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  return (
    <Dialog title="Add a webhook" onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-4">
        <Field label="Name" required value={name} onChange={(event) => setName(event.target.value)} />
        <Field
          label="URL"
          type="url"
          required
          value={url}
          onChange={(event) => setUrl(event.target.value)}
          placeholder="https://example.com/hooks"
        />
        <fieldset>
          <legend className="text-sm font-medium">Events (none chosen: all)</legend>
          {webhookEvents.map((one) => (
            <label key={one} className="flex items-center gap-2 py-0.5 text-sm">
              <input
                type="checkbox"
                checked={events.includes(one)}
                onChange={(event) => setEvents(event.target.checked ? [...events, one] : events.filter((other) => other !== one))}
              />
              {one}
            </label>
          ))}
        </fieldset>
        <Problem error={add.error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={add.isPending}>
            Add
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
