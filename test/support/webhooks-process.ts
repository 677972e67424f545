/** A process that sends to webhooks like `postrider webhooks-process`, with bodies from the test's events. Tests kill it. */
import { openIds, silentLog, systemClock, systemRandom } from '#base'
import { openDb } from '#db'
import { startSending } from '#webhooks'
import { loopbackPost, plainBodies, sendingConfig, sendingSecrets } from './webhook-sender-parts.ts'

const [, , url = '', processId = ''] = process.argv
const db = await openDb({ url, poolSize: 4, applicationName: 'test webhooks', log: silentLog })
await startSending({
  db,
  clock: systemClock,
  ids: openIds(systemRandom),
  log: silentLog,
  secrets: sendingSecrets,
  post: loopbackPost(),
  bodies: plainBodies,
  config: sendingConfig,
  version: 'test',
  processId,
})
process.on('disconnect', () => process.exit(0))
