/**
 * Decides the change of one record set from the wanted records, the records that Postrider wrote, and those that DNS has. Pure. A record that
 * Postrider did not write is never removed, and its conflict with a wanted one is a problem for the operator.
 */
import type { Prerequisite, RecordChange, UpdateType } from '#net'
import { textOfData, updateTypes, wireData } from '#net'

/** The records of one name and type. */
export interface RecordSet {
  name: string
  type: UpdateType
  /** Empty: Postrider wants no record here any more. */
  wanted: readonly string[]
}

export interface FoundRecord {
  type: UpdateType
  text: string
  /** As the server has it; undefined if only the text is known. */
  data?: Buffer | undefined
}

export type SetPlan =
  | { kind: 'settled' /** Of the written ones, by their text. */; present: string[] /** Written once, and gone. */; gone: string[] }
  | { kind: 'conflict'; problem: string }
  | { kind: 'change'; add: string[]; remove: FoundRecord[]; prerequisites: Prerequisite[] }

export const ttlS = 3600

/** The form in which DNS returns this text. Throws for text that does not fit the type. */
export const plainText = (type: UpdateType, text: string): string => textOfData(updateTypes[type], wireData(type, text)) ?? text

/** SPF, DKIM and the like: a second record with the same first tag makes both void. Other texts may stand beside them. */
const kindOf = (text: string) => /^v=[a-z0-9]+/i.exec(text)?.[0].toLowerCase() ?? ''

/** `written`: by Postrider, or perhaps, if its last change had no answer. */
export function planSet({ name, type, wanted }: RecordSet, written: readonly string[], found: readonly FoundRecord[]): SetPlan {
  const alias = type === 'CNAME' ? undefined : found.find((one) => one.type === 'CNAME')
  if (alias) {
    if (wanted.length === 0) return { kind: 'settled', present: [], gone: [...written] }
    return { kind: 'conflict', problem: `a CNAME record to ${alias.text} stands at the name` }
  }
  const texts = found.map(({ text }) => text)
  const mine = found.filter(({ text }) => written.includes(text))
  const others = found.filter(({ text }) => !written.includes(text) && !wanted.includes(text))
  const add = wanted.filter((text) => !texts.includes(text))
  const remove = mine.filter(({ text }) => !wanted.includes(text))
  if (add.length === 0 && remove.length === 0)
    return {
      kind: 'settled',
      present: written.filter((text) => texts.includes(text)),
      gone: written.filter((text) => !texts.includes(text)),
    }
  const inTheWay = others.find((one) => type !== 'TXT' || wanted.some((text) => kindOf(text) !== '' && kindOf(text) === kindOf(one.text)))
  if (add.length > 0 && inTheWay)
    return { kind: 'conflict', problem: `another ${type} record stands at the name: ${inTheWay.text.slice(0, 200)}` }
  return { kind: 'change', add, remove, prerequisites: prerequisitesOf(name, type, found) }
}

/** DNS is as it was read: the set did not change in between. */
function prerequisitesOf(name: string, type: UpdateType, found: readonly FoundRecord[]): Prerequisite[] {
  if (found.length > 0) return [{ kind: 'exactly', name, type, data: found.map((one) => one.data ?? wireData(type, one.text)) }]
  if (type === 'CNAME') return [{ kind: 'absent', name, type: 'any' }]
  return [
    { kind: 'absent', name, type },
    { kind: 'absent', name, type: 'CNAME' },
  ]
}

/** In the order of the message: a CNAME that is added while another stands would replace it. */
export const changesOf = (name: string, type: UpdateType, { add, remove }: Extract<SetPlan, { kind: 'change' }>): RecordChange[] => [
  ...remove.map((one) => ({ kind: 'remove' as const, name, type, data: one.data ?? wireData(type, one.text), ttlS })),
  ...add.map((text) => ({ kind: 'add' as const, name, type, data: wireData(type, text), ttlS })),
]
