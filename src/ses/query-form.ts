/**
 * Reads the form of an AWS Query request (application/x-www-form-urlencoded): names with dots become objects, and members with numbers
 * arrays. Takes time in proportion to the form, in turns, so that a large message does not block other requests.
 */
import { hexDigitOf, nextTurn } from '#base'
import { SesRefusal } from './errors.ts'

/** Fifty recipients, their names, and as many tags and parameters as an action has. */
const maxFields = 1000
const maxNameOctets = 256
const maxDepth = 8
const maxMembers = 200

const mayBeEmpty = /\.(?:Data|Value)$/

const equals = 0x3d
const ampersand = 0x26
const percent = 0x25
const plus = 0x2b
const space = 0x20

/** Octets that are decoded in one turn of the event loop: less than a millisecond. */
const octetsInTurn = 262_144

/** Decodes in place, because the decoded octets are never more; a percent sign without two digits stays as it is. */
async function decoded(value: Buffer): Promise<string> {
  let length = 0
  let turn = octetsInTurn
  for (let at = 0; at < value.length; at++) {
    const octet = value[at] as number
    const high = octet === percent ? hexDigitOf(value[at + 1]) : -1
    const low = high === -1 ? -1 : hexDigitOf(value[at + 2])
    if (low !== -1) at += 2
    value[length++] = low === -1 ? (octet === plus ? space : octet) : high * 16 + low
    if (at > turn) {
      turn = at + octetsInTurn
      await nextTurn()
    }
  }
  return value.toString('utf8', 0, length)
}

type Tree = Map<string, Tree | string>

/** Throws a `SesRefusal`. The form's octets are overwritten. */
export async function readQueryForm(form: Buffer): Promise<Record<string, unknown>> {
  const tree: Tree = new Map()
  let count = 0
  for (let start = 0; start < form.length; ) {
    const next = form.indexOf(ampersand, start)
    const end = next === -1 ? form.length : next
    const pair = form.subarray(start, end)
    start = end + 1
    if (pair.length === 0) continue
    if (++count > maxFields) throw new SesRefusal('badRequest', `the form has more than ${maxFields} parameters`)
    const named = pair.subarray(0, maxNameOctets + 1).indexOf(equals)
    const nameEnd = named === -1 ? pair.length : named
    if (nameEnd > maxNameOctets) throw new SesRefusal('badRequest', `the form has a parameter name longer than ${maxNameOctets} bytes`)
    const name = await decoded(pair.subarray(0, nameEnd))
    const value = await decoded(pair.subarray(nameEnd + 1))
    // SDKs send an empty list in this way.
    if (value !== '' || mayBeEmpty.test(name)) put(tree, name, value)
  }
  return objectOf(tree)
}

function put(tree: Tree, name: string, value: string): void {
  const path = name.split('.')
  const refuse = (problem: string) => new SesRefusal('badRequest', `the parameter ${name.slice(0, 60)} ${problem}`)
  if (path.length > maxDepth) throw refuse('has too many parts')
  let at = tree
  for (const part of path.slice(0, -1)) {
    const inside = at.get(part) ?? new Map<string, Tree | string>()
    if (typeof inside === 'string') throw refuse('is given as a value and as a structure')
    at.set(part, inside)
    at = inside
  }
  const last = path.at(-1) ?? ''
  if (at.has(last)) throw refuse('is given twice')
  at.set(last, value)
}

const memberNumber = /^[1-9]\d{0,4}$/

/** `{"member": {"1": a, "2": b}}` is the list of a and b. The prototype is null, so that no name has a meaning. */
function objectOf(tree: Tree): Record<string, unknown> {
  const made: Record<string, unknown> = Object.create(null)
  for (const [name, value] of tree) made[name] = typeof value === 'string' ? value : valueOf(value)
  return made
}

function valueOf(tree: Tree): unknown {
  const members = tree.get('member') ?? tree.get('entry')
  if (tree.size !== 1 || members === undefined || typeof members === 'string') return objectOf(tree)
  const numbers = [...members.keys()]
  if (!numbers.every((one) => memberNumber.test(one))) throw new SesRefusal('badRequest', 'a list has a member whose number is wrong')
  if (numbers.length > maxMembers) throw new SesRefusal('badRequest', `a list has more than ${maxMembers} members`)
  return numbers
    .sort((one, other) => Number(one) - Number(other))
    .map((number) => {
      const value = members.get(number)
      return typeof value === 'string' ? value : objectOf(value as Tree)
    })
}
