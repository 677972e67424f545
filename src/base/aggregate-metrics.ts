/**
 * Metrics of the service and all its child processes on one page. Children report their counts to the parent. Counts of an ended child are
 * kept, so that no counter ever decreases.
 */
import type { ChildProcess } from 'node:child_process'
import { AggregatorRegistry, type MetricObject } from 'prom-client'
import type { Clock } from './clock.ts'
import { metricsRegistry } from './metrics.ts'

type Numbers = MetricObject[]
/** Missing in the types of prom-client's registry. */
type Read = { get(): Promise<MetricObject> }

const reportEveryMs = 2000
const ours = 'postrider_'

const ofChildren = new Map<ChildProcess, Numbers>()
let ofTheEnded: Numbers = []

const together = (all: Numbers[]) => AggregatorRegistry.aggregate(all)
/** A gauge is a current value, to which an ended process contributes no part. */
const lasting = (numbers: Numbers) => numbers.filter(({ type }) => String(type) !== 'gauge')

/** In a child: reports to its parent repeatedly until the process ends. Elsewhere: no effect. */
export function reportToParent(clock: Clock): void {
  if (process.send === undefined) return
  const report = async () => {
    // Those of Node are read from files, which costs more than all others.
    const ownMetrics = metricsRegistry.getMetricsAsArray().filter(({ name }) => name.startsWith(ours)) as unknown as Read[]
    const numbers = await Promise.all(ownMetrics.map((metric) => metric.get()))
    if (!process.connected) return
    process.send?.({ numbers })
    clock.after(reportEveryMs, () => void report())
  }
  void report()
}

/** In a parent: receives the child's reports. */
export function collectFromChild(child: ChildProcess): void {
  child.on('message', (message) => {
    if (typeof message === 'object' && 'numbers' in message) ofChildren.set(child, message.numbers as Numbers)
  })
  child.once('exit', () => {
    const last = ofChildren.get(child)
    ofChildren.delete(child)
    if (!last) return
    void together([ofTheEnded, lasting(last)])
      .getMetricsAsJSON()
      .then((numbers) => {
        ofTheEnded = numbers
      })
  })
}

/** In Prometheus text format. */
export async function metricsPage(): Promise<{ contentType: string; text: string }> {
  const all = together([await metricsRegistry.getMetricsAsJSON(), ...ofChildren.values(), ofTheEnded])
  return { contentType: metricsRegistry.contentType, text: await all.metrics() }
}
