/** GET /events/stream (contract 18a): events as server-sent events, each with the body that a webhook would get. */
import Type from 'typebox'
import { wrongField } from '#base'
import type { LogPosition } from '#events'
import {
  allEventNames,
  parseEventNames,
  parsePosition,
  positionText,
  type StreamStep,
  type WebhookEmailEvent,
  webhookBody,
  webhookEmailEvents,
} from '#webhooks'
import { tenantParameter } from './common-schemas.ts'
import { isContentHidden } from './content-access.ts'
import { streamRoute } from './define-endpoint.ts'
import { query } from './query-parameters.ts'

/** Reconnection delay sent to readers. */
const comeBackMs = 2000
/** Characters per write; also the most that is produced before the reader has read the last write. */
const pieceLength = 16_384

export const streamEvents = streamRoute({
  method: 'GET',
  path: '/events/stream',
  name: 'events.stream',
  summary: 'Stream events as they happen (server-sent events)',
  permission: 'emails:read',
  scope: 'organisation or tenant',
  families: 'organisation',
  query: query({
    tenantId: tenantParameter,
    events: Type.Optional(
      Type.String({
        maxLength: 500,
        description: `Only these events, comma-separated: ${webhookEmailEvents.join(', ')}. Default: the first ${allEventNames.length}`,
      }),
    ),
    after: Type.Optional(
      Type.String({
        maxLength: 50,
        description: 'Id of the event to resume after; the header Last-Event-ID has precedence. Default: only new events',
      }),
    ),
  }),
  data: Type.String({
    description:
      '`id` is the log position, `event` the event name, `data` the webhook body; its payload is empty if contents are hidden for the role of the signed-in member',
  }),
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ query: { events, after }, tenantId, lastEventId, credential }, { live, db }) => {
    const wanted = events === undefined ? null : namesIn(events)
    const hiddenIn = async ({ events }: StreamStep) => events.length > 0 && (await isContentHidden(credential, tenantId, { db }))
    const from = positionIn('Last-Event-ID', lastEventId) ?? positionIn('after', after) ?? (await live.endOfLog())
    return async function* (signal) {
      yield `retry: ${comeBackMs}\n${idLine(from)}\n`
      for await (const step of live.follow({ after: from, tenantId, events: wanted }, signal)) yield* piecesOf(step, await hiddenIn(step))
    }
  },
})

const idLine = (position: LogPosition) => `id: ${positionText(position)}\n`

/** The reader stores an id without data and emits no event, so that a quiet stream also resumes at its position. */
function* piecesOf({ events, position }: StreamStep, isHidden: boolean): Generator<string> {
  let piece = events.length === 0 ? `: quiet\n${idLine(position)}\n` : ''
  for (const one of events) {
    piece += `${idLine(one.position)}event: ${one.event}\ndata: ${JSON.stringify(webhookBody(isHidden ? { ...one, payload: {} } : one))}\n\n`
    if (piece.length < pieceLength) continue
    yield piece
    piece = ''
  }
  if (piece !== '') yield piece
}

function namesIn(text: string): ReadonlySet<WebhookEmailEvent> {
  const parsed = parseEventNames(text)
  if ('names' in parsed) return parsed.names
  throw wrongField('events', `has "${parsed.unknown.slice(0, 50)}", which is not one of ${webhookEmailEvents.join(', ')}`)
}

function positionIn(field: string, text: string | undefined): LogPosition | undefined {
  if (text === undefined || text === '') return undefined
  const position = parsePosition(text)
  if (position) return position
  throw wrongField(field, 'must be an event id of this stream')
}
