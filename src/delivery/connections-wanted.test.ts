import { describe, expect, test } from 'vitest'
import { connectionsWanted } from './connections-wanted.ts'

const none = { queued: 0, connecting: 0, open: 0, idle: 0, busyNotPipelined: 0, pipelineDepth: 2, limit: 10 }

describe('the number of connections of a site', () => {
  test.each([
    ['stays zero without mail', {}, 0],
    ['is one for the first job', { queued: 1 }, 1],
    ['stays while the connections being opened can take the queue', { queued: 2, connecting: 1 }, 1],
    ['grows when the queue exceeds the pipelines of the connections being opened', { queued: 3, connecting: 1 }, 2],
    ['stays while a deeper pipeline can take the queue', { queued: 3, connecting: 1, pipelineDepth: 3 }, 1],
    ['grows when each open connection has a full pipeline', { queued: 1, open: 2 }, 3],
    ['counts open connections and those being opened together', { queued: 9, connecting: 1, open: 2 }, 4],
    ['stays while an idle connection can take the mail', { queued: 50, open: 1, idle: 1 }, 1],
    ['stays while a busy connection has room in its pipeline', { queued: 50, open: 2, busyNotPipelined: 1 }, 2],
    ['grows by one at a time, however long the queue is', { queued: 5000 }, 1],
    ['stays at the limit', { queued: 50, connecting: 1, open: 2, limit: 3 }, 3],
    ['stays at one while the site has not accepted a message', { queued: 50, open: 1, limit: 1 }, 1],
    ['does not fall when the limit falls below the open connections', { queued: 50, open: 5, limit: 1 }, 5],
    ['stays without mail, though connections are open', { open: 2 }, 2],
  ])('%s', (_, counts, wanted) => {
    expect(connectionsWanted({ ...none, ...counts })).toBe(wanted)
  })
})
