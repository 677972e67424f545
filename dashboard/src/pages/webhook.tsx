/** One webhook: why it fails, its secret, a test request, deliveries and replay. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, getPage, patch, post, remove, withQuery } from '../api-client.ts'
import { type Webhook, type WebhookDelivery, type WebhooksTestData, webhookEvents } from '../api-types.ts'
import { Confirm, FormDialog, Once, Several } from '../parts/action-dialogs.tsx'
import { Badge, Button, Heading, Problem, Warning } from '../parts/basic-components.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { FactBox } from '../parts/fact-box.tsx'
import { Field, Select } from '../parts/form-controls.tsx'
import { Menu } from '../parts/menu.tsx'
import { BackTo, Waiting } from '../parts/paged-lists.tsx'
import { Code, Copy, Time, Value } from '../parts/time-and-copy.tsx'
import { useParam } from '../parts/url-params.ts'
import { Deliveries } from '../parts/webhook-deliveries.tsx'
import { RequestsByHour } from '../parts/webhook-hours.tsx'
import { ReplayRange } from '../parts/webhook-replay.tsx'
import { WebhookBadge, WebhookState } from '../parts/webhook-state.tsx'
import { useLastDay } from '../parts/webhook-use.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.webhook
const lookEveryMs = 10_000

type Opened = 'edit' | 'rotate' | 'remove' | 'test' | 'replay'

/** Long because the actions, the shown secret and the dialogs share their state. */
export function WebhookPage() {
  const id = useParam('webhookId')
  const { mayChange } = useHere()
  const client = useQueryClient()
  const [secret, setSecret] = useState<string>()
  const [opened, setOpened] = useState<Opened>()
  const key = ['webhook', id]
  const { data: webhook, error } = useQuery({
    queryKey: key,
    queryFn: () => get<Webhook>(`/v1/webhooks/${id}`),
    refetchInterval: lookEveryMs,
  })
  const refresh = () => client.invalidateQueries({ queryKey: key })
  const reveal = useMutation({
    mutationFn: () => get<Webhook>(`/v1/webhooks/${id}?reveal=true`),
    onSuccess: (shown) => setSecret(shown.secret),
  })
  const toggle = useMutation({ mutationFn: (enabled: boolean) => patch<Webhook>(`/v1/webhooks/${id}`, { enabled }), onSuccess: refresh })
  if (!webhook) return <Waiting error={error} />
  return (
    <>
      <BackTo to="/webhooks">{texts.pages.webhooks}</BackTo>
      <Heading title={webhook.name} beside={<WebhookBadge webhook={webhook} />}>
        {mayChange && (
          <>
            <Button onClick={() => setOpened('test')}>{words.test}</Button>
            <Button onClick={() => setOpened('edit')}>{words.edit}</Button>
            <Button onClick={() => reveal.mutate()}>{words.showSecret}</Button>
            <Menu
              label={texts.email.moreActions}
              actions={[
                {
                  label: webhook.enabled ? words.switchOff : words.switchOn,
                  onChoose: () => toggle.mutate(!webhook.enabled),
                },
                { label: words.rotate, onChoose: () => setOpened('rotate') },
                { label: texts.actions.remove, isDanger: true, onChoose: () => setOpened('remove') },
              ]}
            />
          </>
        )}
      </Heading>
      <Problem error={error ?? toggle.error ?? reveal.error} />
      {webhook.enabled && webhook.failingSince && (
        <Failing id={id} since={webhook.failingSince} onReplay={mayChange ? () => setOpened('replay') : undefined} />
      )}
      <Summary webhook={webhook} />
      {secret && (
        <div className="mt-3 flex flex-wrap items-center gap-2">
          <Code>{secret}</Code>
          <Copy text={secret} label={words.copySecret} />
        </div>
      )}
      <Deliveries id={id} />
      {opened && (
        <OpenedDialog
          opened={opened}
          webhook={webhook}
          onDone={async () => {
            if (opened === 'rotate') setSecret(undefined)
            await refresh()
          }}
          onClose={() => setOpened(undefined)}
        />
      )}
    </>
  )
}

/** Since when, how often, and the last response. */
function Failing({ id, since, onReplay }: { id: string; since: string; onReplay: (() => void) | undefined }) {
  const path = withQuery(`/v1/webhooks/${id}/deliveries`, { success: 'false', perPage: 1 })
  const { data } = useQuery({ queryKey: ['deliveries', path], queryFn: () => getPage<WebhookDelivery>(path), refetchInterval: lookEveryMs })
  const last = data?.items[0]
  return (
    <Warning tone="bad">
      <p className="font-semibold">
        {words.failingSince} <Time at={since} exact />
      </p>
      {last && (
        <p>
          {words.lost(data.total)} {words.lastAnswer} {last.statusCode ?? words.noAnswer} · <Time at={last.timestamp} />
        </p>
      )}
      {onReplay && (
        <Button small className="mt-2" onClick={onReplay}>
          {words.replaySince}
        </Button>
      )}
    </Warning>
  )
}

function Summary({ webhook }: { webhook: Webhook }) {
  const { nameOf, tenants } = useHere()
  const loaded = useLastDay([webhook.id])
  const use = loaded?.[webhook.id]
  return (
    <>
      {!webhook.enabled && (
        <p className="mb-3 text-sm empty:hidden">
          <WebhookState webhook={webhook} />
        </p>
      )}
      <FactBox
        facts={[
          [
            texts.webhooks.url,
            <Value key="url" name={texts.webhooks.url}>
              {webhook.url}
            </Value>,
          ],
          [texts.webhooks.eventsShort, webhook.allEvents ? words.allEvents : webhook.events.join(', ')],
          [
            texts.webhooks.day,
            use ? (
              <span key="day">
                <span className={use.delivered === 0 ? 'font-medium text-bad' : ''}>
                  {texts.webhooks.delivered(use.delivered, use.requests, use.isComplete)}
                </span>
                {use.delivered > 0 && `, ${texts.webhooks.median(use.medianMs)}`}
              </span>
            ) : loaded ? (
              texts.webhooks.quiet
            ) : (
              '–'
            ),
          ],
          [texts.shell.tenant, tenants.length > 1 && nameOf(webhook.tenantId)],
        ]}
      />
      {use && <RequestsByHour of={use} />}
    </>
  )
}

interface OpenedProps {
  webhook: Webhook
  onDone: () => Promise<void>
  onClose: () => void
}

function OpenedDialog({ opened, ...rest }: OpenedProps & { opened: Opened }) {
  const navigate = useNavigate()
  if (opened === 'edit') return <EditWebhook {...rest} />
  if (opened === 'rotate') return <RotateSecret {...rest} />
  if (opened === 'test') return <TestRequest {...rest} />
  if (opened === 'replay')
    return (
      <ReplayRange
        id={rest.webhook.id}
        {...(rest.webhook.failingSince ? { since: rest.webhook.failingSince } : {})}
        onDone={rest.onDone}
        onClose={rest.onClose}
      />
    )
  return (
    <Confirm
      title={texts.actions.removeTitle(rest.webhook.name)}
      text={words.removeText}
      action={texts.actions.remove}
      run={() => remove(`/v1/webhooks/${rest.webhook.id}`)}
      onDone={() => navigate({ to: '/webhooks', search: {} })}
      onClose={rest.onClose}
    />
  )
}

function EditWebhook({ webhook, onDone, onClose }: OpenedProps) {
  const [name, setName] = useState(webhook.name)
  const [url, setUrl] = useState(webhook.url)
  const [events, setEvents] = useState<string[]>(webhook.allEvents ? [] : webhook.events)
  return (
    <FormDialog
      title={words.editTitle(webhook.name)}
      action={texts.actions.save}
      run={() =>
        patch(`/v1/webhooks/${webhook.id}`, { name, url, ...(events.length === 0 ? { allEvents: true } : { allEvents: false, events }) })
      }
      onDone={async () => {
        onClose()
        await onDone()
      }}
      onClose={onClose}
    >
      <Field label={texts.webhooks.name} required value={name} onChange={({ target }) => setName(target.value)} />
      <Field label={texts.webhooks.url} type="url" required value={url} onChange={({ target }) => setUrl(target.value)} />
      <Several legend={texts.webhooks.events} choices={webhookEvents} chosen={events} onChange={setEvents} />
    </FormDialog>
  )
}

function RotateSecret({ webhook, onDone, onClose }: OpenedProps) {
  const [secret, setSecret] = useState<string>()
  if (secret !== undefined)
    return <Once title={words.rotated} text={words.rotatedText} secret={secret} copy={words.copySecret} onClose={onClose} />
  return (
    <Confirm
      title={words.rotateTitle(webhook.name)}
      text={words.rotateText}
      action={words.rotate}
      run={async () => {
        await patch(`/v1/webhooks/${webhook.id}`, { rotateSecret: true })
        return get<Webhook>(`/v1/webhooks/${webhook.id}?reveal=true`)
      }}
      onDone={async (shown) => {
        setSecret(shown.secret ?? '')
        await onDone()
      }}
      onClose={onClose}
    />
  )
}

/** Sends a sample event and shows the response. */
function TestRequest({ webhook: { id, name }, onClose }: OpenedProps) {
  const [event, setEvent] = useState<string>('MessageSent')
  const test = useMutation({ mutationFn: () => post<WebhooksTestData>(`/v1/webhooks/${id}/test`, { event }) })
  return (
    <Dialog title={words.testTitle(name)} onClose={onClose}>
      <Select label={words.event} value={event} onChange={setEvent} choices={webhookEvents.map((value) => ({ value, label: value }))} />
      <div aria-live="polite" className="mt-3 min-h-5 text-sm">
        <Problem error={test.error} />
        {test.data && (
          <p>
            <Badge tone={test.data.success ? 'good' : 'bad'}>{test.data.statusCode ?? words.noAnswer}</Badge>{' '}
            {texts.ms(test.data.durationMs)} {test.data.error}
          </p>
        )}
      </div>
      <div className="mt-4 flex justify-end gap-2">
        <Button onClick={onClose}>{texts.actions.close}</Button>
        <Button kind="main" disabled={test.isPending} onClick={() => test.mutate()}>
          {words.sample}
        </Button>
      </div>
    </Dialog>
  )
}
