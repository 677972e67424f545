/** Decides how many connections a site needs for its queued mail. */

export interface ConnectionCounts {
  /** Jobs that no connection has taken. */
  queued: number
  connecting: number
  /** Open connections, of which `idle` have no transaction and `busyNotPipelined` can pipeline another one. */
  open: number
  idle: number
  busyNotPipelined: number
  /** Transactions given to one connection at a time. */
  pipelineDepth: number
  /** Maximum number of connections. */
  limit: number
}

/**
 * The number of connections, open or being opened, that the site should have: those it has, or one more. A connection with room takes the
 * mail instead of a new one. A site asks again when a connection is full or has ended, so that a few connections stay busy.
 */
export function connectionsWanted({ queued, connecting, open, idle, busyNotPipelined, pipelineDepth, limit }: ConnectionCounts): number {
  const connections = connecting + open
  const hasRoom = idle + busyNotPipelined > 0 || queued <= connecting * pipelineDepth
  return hasRoom || connections >= limit ? connections : connections + 1
}
