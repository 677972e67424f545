/** Exim accepts undeliverable mail and sends DSNs. */
import { missingExim, startExim } from '../support/exim.ts'
import { testBounceLoop } from './bounce-loop.ts'

testBounceLoop({
  name: 'Exim',
  missing: missingExim(),
  start: (port, ports) => startExim(port, 'local.example', ports),
  warned: /== ann@later\.example[^]*=> b[a-z2-7]{51}@rp\.house\.test/,
  // Exim writes a status of its own where there was no reply.
  statuses: { 'local.example': '5.0.0' },
})
