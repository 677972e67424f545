/**
 * Delivers queued recipients in one process: claim, prepare, attempt, record. `delivery-process` claims recipients, and `due-time-loops`
 * makes deferred ones ready. A claimed recipient passes `preSendChecks` and joins a `job`. `dispatch` asks the `router` and hands the job
 * to a `site`, whose connections (`open-connection`) send prepared messages (`connection-worker`, `prepare-messages`, `content-reader`,
 * `render-message`). The reply becomes an `attempt-outcome`, which `record-outcomes` stores.
 * `egress/` chooses the egress source, `shaping/` limits traffic, `tls/` decides the TLS policy, `transports/` the relay of a share of the
 * mail; operators use `queue-admin`, `explain`, `restore-hold` and `advance-test-clock`. Owns: shaping, connection_leases, simulated_events,
 * egress_sources, pool_assignments, sts_policies, tls_requirements, tls_session_policies, tls_session_failures, warm_up_days, transports, transport_rules, transport_states. Uses:
 * base, mail, dkim, net, smtp, bounces, simulator, db, tenants, limits, domains, events, suppressions, emails, spool, tracking. Used by:
 * tls-reports, usage, reputation, housekeeping, installation, doctor, imports, agents, http, cli, main. Promises: a recipient reaches a connection only
 * after its claim is committed; a process that lost its lease stops before the next final dot; an outcome is kept and recorded however
 * long the database is unavailable; an orderly stop repeats no message whose server answers the final dot within a minute.
 */
export { advanceTestClock } from './advance-test-clock.ts'
export { ContentReader, type ShownContent } from './content-reader.ts'
export { type DelayReasons, openDelayReasons } from './delay-reason.ts'
export { type Delivery, type DeliveryDeps, startDelivery } from './delivery-process.ts'
export {
  addSource,
  assignPool,
  canBind,
  defaultPool,
  type EgressSource,
  listAssignments,
  listSources,
  type PoolAssignment,
  removeAssignmentsOfTenant,
  removeSource,
  unassignPool,
} from './egress/egress-sources.ts'
export { notifyWarmUps, openWarmUp, warmUpCeiling, warmUpDay } from './egress/warm-up.ts'
export { expireHolds, expireQueued } from './expire-queued.ts'
export { explain } from './explain.ts'
export { ObsoleteHolds } from './obsolete-holds.ts'
export {
  cancelQueue,
  cancelQueued,
  domainName,
  flushQueue,
  pauseQueue,
  pauseTenant,
  type QueueLine,
  readQueue,
  releaseQueue,
  resumePaused,
  resumeTenant,
} from './queue-admin.ts'
export { QueueUpdates } from './queue-updates.ts'
export type { ContentPart } from './read-content.ts'
export { openRecorder } from './record-outcomes.ts'
export { deleteDomain } from './remove-domain.ts'
export { holdAfterRestore, restoreWaiting, resumeAfterRestore } from './restore-hold.ts'
export { openProviders } from './shaping/providers.ts'
export { TrafficShaper } from './shaping/shaping.ts'
export { testTransport } from './test-transport.ts'
export {
  type CountedFailure,
  type CountedPolicy,
  type DayOfDomain,
  deleteOldTlsSessions,
  deleteTlsSessions,
  listCountedPolicies,
  listTlsSessionDays,
} from './tls/counted-sessions.ts'
export { deleteExpiredPolicies, openSts } from './tls/mta-sts-cache.ts'
export { listTlsRequirements, removeTlsRequirement, requireTls } from './tls/tls-requirements.ts'
export {
  getTransport,
  listRules,
  listTransports,
  removeRulesOfTenant,
  removeTransport,
  saveTransport,
  sealedOfTransports,
  shareTransport,
  shownRule,
  type Transport,
  type TransportRule,
  type TransportScope,
  type TransportSettings,
  type TransportTls,
  transportTlsModes,
} from './transports/transport-records.ts'
export { listTransportStates, removeTransportStatesOfTenant, type TransportState } from './transports/transport-states.ts'
export { readWaiting, type WaitingLine } from './waiting-mail.ts'
