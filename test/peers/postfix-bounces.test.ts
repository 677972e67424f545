/** Postfix accepts undeliverable mail and sends DSNs. */
import { missingPostfix, startPostfix } from '../support/postfix.ts'
import { testBounceLoop } from './bounce-loop.ts'

testBounceLoop({
  name: 'Postfix',
  missing: missingPostfix(),
  start: (port, ports) => startPostfix(port, 'local.example', ports),
  warned: /sender delay notification[^]*to=<b[a-z2-7]{51}@rp\.house\.test>.*status=sent/,
})
