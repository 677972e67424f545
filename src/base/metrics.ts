/** Prometheus metrics, named by its conventions; the entry points print them. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** One registry for each process. */
export const metricsRegistry = new Registry()
/** The lag of the event loop is sampled by waking it: every 10 ms by default, which is half of an idle process's work. */
const sampleLagEveryMs = 250
collectDefaultMetrics({ register: metricsRegistry, eventLoopMonitoringPrecision: sampleLagEveryMs })

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
    help: 'Delivery attempts with an unknown outcome',
    registers,
  }),
  reports: new Counter({
    name: 'postrider_reports_total',
    help: 'Mail to return paths (bounces, complaints, other) by its effect',
    labelNames: ['kind', 'effect'],
    registers,
  }),
  recalled: new Counter({
    name: 'postrider_due_times_corrected_total',
    help: 'Emails made due at once because a clock that had been ahead set their next attempt beyond the retry schedule',
    registers,
  }),
  inFlight: new Gauge({
    name: 'postrider_recipients_in_flight',
    help: 'Recipients handed to a connection whose outcome is not yet recorded',
    registers,
  }),
  deliveryConnections: new Gauge({
    name: 'postrider_delivery_connections',
    help: 'Connections to the servers of recipients, by phase: connecting, idle, waiting_for_permit, sending or draining',
    labelNames: ['phase'],
    registers,
  }),
  ownedShards: new Gauge({ name: 'postrider_shards_owned', help: 'Spool shards owned by this process', registers }),
  acceptBatch: new Histogram({
    name: 'postrider_accept_batch_submissions',
    help: 'Submissions per group commit',
    buckets: [1, 2, 4, 8, 16, 32, 64],
    registers,
  }),
  logsDropped: new Counter({
    name: 'postrider_request_logs_dropped_total',
    help: 'Request log entries lost because the database was unavailable or rejected them',
    registers,
  }),
  trackingEvents: new Counter({
    name: 'postrider_tracking_events_total',
    help: 'Opens and clicks recorded, by human or machine',
    labelNames: ['kind', 'source'],
    registers,
  }),
  trackingEventsDropped: new Counter({
    name: 'postrider_tracking_events_dropped_total',
    help: 'Opens and clicks not recorded: buffer full while the database was unavailable, too many for one email, or unknown email',
    labelNames: ['reason'],
    registers,
  }),
  webhookRequests: new Counter({
    name: 'postrider_webhook_requests_total',
    help: 'Webhook requests by outcome',
    labelNames: ['outcome'],
    registers,
  }),
  webhooksFailing: new Gauge({
    name: 'postrider_webhooks_failing',
    help: 'Enabled webhooks of the installation whose endpoint is failing',
    registers,
  }),
  webhooksFailingSeconds: new Gauge({
    name: 'postrider_webhooks_failing_seconds',
    help: 'Time the longest-failing webhook of the installation has been failing',
    registers,
  }),
  queued: new Gauge({
    name: 'postrider_queue_recipients',
    help: 'Recipients in the spool of the installation, by state',
    labelNames: ['state'],
    registers,
  }),
  overdue: new Gauge({
    name: 'postrider_queue_oldest_overdue_seconds',
    help: 'Time by which the oldest due recipient of the installation is overdue',
    registers,
  }),
  logDelay: new Gauge({
    name: 'postrider_event_log_delay_seconds',
    help: 'Time since the oldest event that webhooks and counts cannot read yet, because a transaction of the database server is open',
    registers,
  }),
  shardsUnowned: new Gauge({ name: 'postrider_shards_unowned', help: 'Spool shards without an owner', registers }),
  restoreWaiting: new Gauge({
    name: 'postrider_restore_pending',
    help: '1 while mail and webhooks from a restored backup are on hold',
    registers,
  }),
  databaseSeconds: new Gauge({
    name: 'postrider_database_latency_seconds',
    help: 'Duration of the last round trip to the database',
    registers,
  }),
  databaseCommitted: new Gauge({
    name: 'postrider_database_committed_timestamp_seconds',
    help: 'Time of the last measurement of this instance that was committed to the database; others keep old values while it stands still',
    registers,
  }),
  clockDifference: new Gauge({
    name: 'postrider_clock_skew_seconds',
    help: "Offset of the database's clock from this machine's; positive when the database is ahead",
    registers,
  }),
  diskFree: new Gauge({ name: 'postrider_disk_free_bytes', help: 'Free space on the file system of the data directory', registers }),
  certificateDays: new Gauge({
    name: 'postrider_certificate_days_left',
    help: 'Days until the certificate of a name expires (POSTRIDER_HTTPS), for the 50 names with the fewest',
    labelNames: ['name'],
    registers,
  }),
  requestSeconds: new Histogram({
    name: 'postrider_http_request_duration_seconds',
    help: 'HTTP requests by endpoint and status',
    labelNames: ['endpoint', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
    registers,
  }),
}
