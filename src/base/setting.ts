/** One setting: its variable, shown default, meaning and reader. Also the readers of values that settings of several areas use. */
import { type Network, networkFrom } from './ip-networks.ts'

interface Setting<T> {
  env: string
  /** As shown in the table; the actual default is the result of `read` for an absent variable. */
  default: string
  means: string
  read: (value: string | undefined) => T
}

export class ConfigError extends Error {}

export const setting = <T>(env: string, shownDefault: string, means: string, read: (value: string | undefined) => T): Setting<T> => ({
  env,
  default: shownDefault,
  means,
  read: (value) => {
    try {
      return read(value === '' ? undefined : value)
    } catch (error) {
      throw new ConfigError(`${env}: ${(error as Error).message}`)
    }
  },
})

export function portFrom(value: string | undefined, fallback: number): number {
  if (value === undefined) return fallback
  if (!/^\d{1,5}$/.test(value) || Number(value) > 65535) throw new Error(`"${value}" is not a port`)
  return Number(value)
}

export function countFrom(value: string | undefined, fallback: number, minimum = 1): number {
  if (value === undefined) return fallback
  if (!/^\d{1,9}$/.test(value) || Number(value) < minimum) throw new Error(`"${value}" is not a whole number of at least ${minimum}`)
  return Number(value)
}

export function choiceFrom<const T extends string>(value: string | undefined, choices: readonly T[], fallback: T): T {
  const choice = choices.find((candidate) => candidate === (value ?? fallback))
  if (choice === undefined) throw new Error(`"${value}" is not one of ${choices.join(', ')}`)
  return choice
}

/** The items of a comma-separated list. */
export const itemsFrom = (value: string | undefined) =>
  (value ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

export function networksFrom(value: string | undefined): Network[] {
  return itemsFrom(value).map((item) => {
    const network = networkFrom(item)
    if (!network) throw new Error(`"${item}" is not a network in CIDR form such as 10.0.0.0/8`)
    return network
  })
}
