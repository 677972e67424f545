/**
 * Replaces the recipient variables of a message in a text, once: a value is not searched again. A text is cut at its variables once for all
 * recipients, and all work for one request comes out of one budget, because a short request can ask for much: a thousand long messages.
 */
import { MailgunRefusal } from './errors.ts'

/** Characters that the messages of one request may have together, as much as the largest request. */
const maxCharacters = 64 * 1_048_576
/** In one text: a short variable, repeated, would cut a long text into millions of pieces. */
const maxVariables = 20_000
/** Cost in characters of a variable, for itself and for each recipient. */
const costOfVariable = 16

/** `%recipient%`, `%recipient.name%`, and Mailgun's names of parts of the address. */
const variable = /%recipient(?:\.([^%\r\n]{1,128})|(_email|_name|_fname|_lname))?%/g

/** Values by name: those of the caller under `.name`, the parts of the address under `_email` and so on, the address under ''. */
export type RecipientValues = ReadonlyMap<string, string>

interface CutText {
  literals: readonly string[]
  /** After each literal but the last: the variable as written, and its name among the values. */
  variables: readonly { written: string; name: string }[]
  /** Of the literals together. */
  length: number
}

export class RecipientVariables {
  #left = maxCharacters
  readonly #cuts = new Map<string, CutText>()

  /** Throws the refusal of messages that are too large together. */
  take(characters: number): void {
    this.#left -= characters
    if (this.#left < 0)
      throw new MailgunRefusal(
        413,
        `the messages of all recipients are larger than ${maxCharacters / 1_048_576} MiB together: send to fewer recipients in one request`,
      )
  }

  /** A variable without a value stays as it is. */
  applied(text: string, values: RecipientValues): string {
    const { literals, variables, length } = this.#cutOf(text)
    const found = variables.map(({ written, name }) => values.get(name) ?? written)
    this.take(found.reduce((sum, one) => sum + one.length + costOfVariable, length))
    return literals.map((literal, index) => literal + (found[index] ?? '')).join('')
  }

  #cutOf(text: string): CutText {
    const known = this.#cuts.get(text)
    if (known) return known
    this.take(text.length)
    const literals: string[] = []
    const variables: CutText['variables'][number][] = []
    let start = 0
    for (const { 0: written, 1: own, 2: part, index } of text.matchAll(variable)) {
      if (variables.length >= maxVariables) throw new MailgunRefusal(400, `a text has more than ${maxVariables} recipient variables`)
      literals.push(text.slice(start, index))
      variables.push({ written, name: own === undefined ? (part ?? '') : `.${own}` })
      start = index + written.length
    }
    literals.push(text.slice(start))
    const cut = { literals, variables, length: literals.reduce((sum, one) => sum + one.length, 0) }
    this.#cuts.set(text, cut)
    return cut
  }
}

/** The parts of an address as Mailgun names them. */
export function partsOfRecipient(given: string, address: string, name: string): [string, string][] {
  const [first = '', ...others] = name.split(' ')
  return [
    ['', given],
    ['_email', address],
    ['_name', name],
    ['_fname', first],
    ['_lname', others.join(' ')],
  ]
}
