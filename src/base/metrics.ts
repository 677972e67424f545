/** Prometheus metrics, named by its conventions; the entry points print them. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** One registry for each process. */
export const metricsRegistry = new Registry()
collectDefaultMetrics({ register: metricsRegistry })

const registers = [metricsRegistry]

export const metrics = {
  accepted: new Counter({
    name: 'postrider_emails_accepted_total',
    help: 'Emails accepted, one per recipient',
    labelNames: ['mode'],
    registers,
  }),
  attempts: new Counter({
    name: 'postrider_delivery_attempts_total',
    help: 'Delivery attempts by outcome',
    labelNames: ['outcome'],
    registers,
  }),
  outcomeUnknown: new Counter({
    name: 'postrider_attempts_outcome_unknown_total',
    help: 'Attempts whose outcome could not be learnt',
    registers,
  }),
  reports: new Counter({
    name: 'postrider_reports_total',
    help: 'Bounces, complaints and other mail to return paths, and what they changed',
    labelNames: ['kind', 'effect'],
    registers,
  }),
  recalled: new Counter({
    name: 'postrider_due_times_corrected_total',
    help: 'Emails whose next attempt was further off than the retry schedule allows, because a clock had been ahead, and which are due at once',
    registers,
  }),
  inFlight: new Gauge({
    name: 'postrider_recipients_in_flight',
    help: 'Recipients handed to a connection and not yet recorded',
    registers,
  }),
  ownedShards: new Gauge({ name: 'postrider_shards_owned', help: 'Spool shards owned by this process', registers }),
  acceptBatch: new Histogram({
    name: 'postrider_accept_batch_submissions',
    help: 'Submissions that shared one commit',
    buckets: [1, 2, 4, 8, 16, 32, 64],
    registers,
  }),
  logsDropped: new Counter({
    name: 'postrider_request_logs_dropped_total',
    help: 'Request log entries that were not written, because the database was away or refused them',
    registers,
  }),
  trackingEvents: new Counter({
    name: 'postrider_tracking_events_total',
    help: 'Opens and clicks recorded, by whether a person or a program made them',
    labelNames: ['kind', 'source'],
    registers,
  }),
  trackingEventsDropped: new Counter({
    name: 'postrider_tracking_events_dropped_total',
    help: 'Opens and clicks that were not recorded: no room while the database was away, too many of one email, no such email',
    labelNames: ['reason'],
    registers,
  }),
  webhookRequests: new Counter({
    name: 'postrider_webhook_requests_total',
    help: 'Requests to webhooks by outcome',
    labelNames: ['outcome'],
    registers,
  }),
  webhooksFailing: new Gauge({
    name: 'postrider_webhooks_failing',
    help: 'Webhooks that are on and whose receivers fail now, in the installation',
    registers,
  }),
  webhooksFailingSeconds: new Gauge({
    name: 'postrider_webhooks_failing_seconds',
    help: 'How long the webhook that fails longest has failed, in the installation',
    registers,
  }),
  queued: new Gauge({
    name: 'postrider_queue_recipients',
    help: 'Recipients in the spool of the installation by state',
    labelNames: ['state'],
    registers,
  }),
  overdue: new Gauge({
    name: 'postrider_queue_oldest_overdue_seconds',
    help: 'How long the recipient that waits longest is past its time, in the installation',
    registers,
  }),
  shardsUnowned: new Gauge({ name: 'postrider_shards_unowned', help: 'Spool shards that no process delivers from', registers }),
  restoreWaiting: new Gauge({
    name: 'postrider_restore_pending',
    help: '1 while what a restored backup had queued is held and webhooks wait',
    registers,
  }),
  databaseSeconds: new Gauge({
    name: 'postrider_database_latency_seconds',
    help: 'The last round trip to the database',
    registers,
  }),
  clockDifference: new Gauge({
    name: 'postrider_clock_skew_seconds',
    help: "How far the database's clock is ahead of this machine's",
    registers,
  }),
  diskFree: new Gauge({ name: 'postrider_disk_free_bytes', help: 'Free space where the data directory lies', registers }),
  requestSeconds: new Histogram({
    name: 'postrider_http_request_duration_seconds',
    help: 'HTTP requests by endpoint and status',
    labelNames: ['endpoint', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
    registers,
  }),
}
