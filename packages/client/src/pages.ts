/** A paged list of the API: one page, or every item with `for await`. */

export interface Page<Item> {
  data: Item[]
  page: number
  perPage: number
  /** On all pages together. */
  total: number
  totalPages: number
}

export class Pages<Item> implements AsyncIterable<Item> {
  readonly #get: (page: number | undefined) => Promise<Page<Item>>

  constructor(get: (page: number | undefined) => Promise<Page<Item>>) {
    this.#get = get
  }

  /** The page named in the query, or the first. */
  page(): Promise<Page<Item>> {
    return this.#get(undefined)
  }

  /** From the page named in the query to the last. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void> {
    for (let number: number | undefined; ; ) {
      const { data, page, totalPages } = await this.#get(number)
      yield* data
      if (data.length === 0 || page >= totalPages) return
      number = page + 1
    }
  }

  /** At most `limit` items. */
  async take(limit: number): Promise<Item[]> {
    const items: Item[] = []
    if (limit <= 0) return items
    for await (const item of this) {
      items.push(item)
      if (items.length >= limit) break
    }
    return items
  }
}
