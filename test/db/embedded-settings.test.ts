/** The embedded server's limits against the connections that the processes open. */
import { expect, test } from 'vitest'
import { hostedRoleNames } from '#base'
import { serverSettings } from '../../src/db/embedded-cluster.ts'
import { apiConnections, maxConnections } from '../../src/main/hosted-roles.ts'

const settingOf = (name: string, connections: number) =>
  Number(
    serverSettings(connections)
      .find((setting) => setting.startsWith(`${name}=`))
      ?.split('=')[1],
  )

test('the embedded server has room for the locks of a statement over the days of a year in each connection of the API', () => {
  const relationsEachDay = 9
  const room = 2 * settingOf('max_locks_per_transaction', 0) * settingOf('max_connections', 0)
  expect(room).toBeGreaterThanOrEqual(apiConnections * relationsEachDay * 372)
})

/** Commands beside the service, sessions, and the three that PostgreSQL keeps for a superuser. */
const others = 20

test.each([
  { deliveryProcesses: 1, separateProcesses: [], connections: 36 },
  { deliveryProcesses: 2, separateProcesses: [...hostedRoleNames], connections: 43 },
  { deliveryProcesses: 10, separateProcesses: [...hostedRoleNames], connections: 99 },
  { deliveryProcesses: 64, separateProcesses: [...hostedRoleNames], connections: 477 },
])('the embedded server has room for $connections connections of $deliveryProcesses delivery processes, and for others', (one) => {
  expect(maxConnections(one)).toBe(one.connections)
  expect(settingOf('max_connections', one.connections)).toBeGreaterThanOrEqual(one.connections + others)
})
