/** Reads the members of a JSON object from outside; a member that the reader does not ask for is refused, never ignored. */

type Members = Readonly<Record<string, unknown>>

const maxShownName = 60

export type FieldProblemKind = 'missing' | 'wrong' | 'not served'

/** Makes the refusal of one field; `path` is its JSON path, `problem` the rest of the sentence. */
export type RefuseField = (path: string, problem: string, kind: FieldProblemKind) => Error

/** Absent and null mean the same. Every method throws the refusal of a member with another type. */
export class JsonFields {
  readonly #members: Members
  readonly #path: string
  readonly #refuse: RefuseField
  readonly #readNames = new Set<string>()

  /** `path`: of the object; empty for the body. */
  constructor(value: unknown, path: string, refuse: RefuseField) {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw refuse(path === '' ? 'the body' : path, 'must be an object', 'wrong')
    this.#members = value as Members
    this.#path = path
    this.#refuse = refuse
  }

  /** Any JSON value. */
  value(name: string): unknown {
    this.#readNames.add(name)
    return Object.hasOwn(this.#members, name) ? (this.#members[name] ?? undefined) : undefined
  }

  text(name: string, maxLength: number): string | undefined {
    const value = this.value(name)
    return value === undefined ? undefined : this.#checked(value, this.#pathOf(name), maxLength)
  }

  needed(name: string, maxLength: number): string {
    const text = this.text(name, maxLength)
    if (text === undefined || text === '') throw this.#refuse(this.#pathOf(name), 'is missing', 'missing')
    return text
  }

  flag(name: string): boolean | undefined {
    const value = this.value(name)
    if (value === undefined || typeof value === 'boolean') return value
    throw this.wrong(name, 'must be true or false')
  }

  /** A text, or an array of texts. */
  texts(name: string, maxItems: number, maxLength: number): string[] {
    const value = this.value(name)
    if (typeof value === 'string') return [this.#checked(value, this.#pathOf(name), maxLength)]
    return this.list(name, maxItems).map((one, index) => this.#checked(one, `${this.#pathOf(name)}[${index}]`, maxLength))
  }

  list(name: string, maxItems: number): readonly unknown[] {
    const value = this.value(name) ?? []
    if (!Array.isArray(value)) throw this.wrong(name, 'must be an array')
    if (value.length > maxItems) throw this.wrong(name, `has more than ${maxItems} elements`)
    return value
  }

  /** Objects of an array, each with a reader of its own. */
  objects(name: string, maxItems: number): JsonFields[] {
    return this.list(name, maxItems).map((one, index) => new JsonFields(one, `${this.#pathOf(name)}[${index}]`, this.#refuse))
  }

  /** An object with text values. */
  pairs(name: string, maxItems: number, maxLength: number): Record<string, string> {
    const value = this.value(name) ?? {}
    if (typeof value !== 'object' || Array.isArray(value)) throw this.wrong(name, 'must be an object of strings')
    const entries = Object.entries(value)
    if (entries.length > maxItems) throw this.wrong(name, `has more than ${maxItems} entries`)
    return Object.fromEntries(
      entries.map(([key, text]) => [key, this.#checked(text, `${this.#pathOf(name)}.${key.slice(0, maxShownName)}`, maxLength)]),
    )
  }

  /** The refusal of a member; `problem` is the rest of the sentence. */
  wrong(name: string, problem: string, kind: FieldProblemKind = 'wrong'): Error {
    return this.#refuse(this.#pathOf(name), problem, kind)
  }

  /** Refuses the members that no other method was asked for, unless they are null or, as a default, false or empty. */
  refuseOthers(): void {
    for (const [name, value] of Object.entries(this.#members))
      if (!this.#readNames.has(name) && !isEmpty(value)) throw this.wrong(name.slice(0, maxShownName), 'is not served', 'not served')
  }

  #pathOf(name: string): string {
    return this.#path === '' ? name : `${this.#path}.${name}`
  }

  #checked(value: unknown, path: string, maxLength: number): string {
    if (typeof value !== 'string') throw this.#refuse(path, 'must be a string', 'wrong')
    if (value.length > maxLength) throw this.#refuse(path, `is longer than ${maxLength} characters`, 'wrong')
    return value
  }
}

const isEmpty = (value: unknown) => value === null || value === false || value === '' || (Array.isArray(value) && value.length === 0)
