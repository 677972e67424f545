/** The memory that the program may use. */
import { totalmem } from 'node:os'

/** Octets: the machine's, or its control group's limit if that is less. */
export const machineMemory = (): number => Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
