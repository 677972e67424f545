/** Adds the calls that a test makes on vendors' SDKs to vitest's report, for `npm run compat`. */
import { beforeEach } from 'vitest'
import { beginSdkCalls } from './sdk-calls.ts'

/** To be called once in each file whose tests use recorded clients. */
export function recordSdkCalls(): void {
  beforeEach(({ task }) => {
    Object.assign(task.meta, { sdkCalls: beginSdkCalls() })
  })
}
