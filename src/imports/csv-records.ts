/**
 * The rows of a CSV export, one at a time. A row has a limit in octets, and so has a line: a row of empty cells has no size of its own.
 */
import { pipeline, Readable } from 'node:stream'
import { Refusal } from '#base'

export interface CsvRow {
  /** Of its end, from 1. */
  line: number
  cells: readonly string[]
}

const lineFeed = 10

/** Rows with quoted cells (RFC 4180), ended by CRLF or LF. Refuses a row or line that is too long, and a quote that is not closed. */
export async function* csvRows(input: AsyncIterable<Uint8Array>, delimiter: string, maxOctets: number): AsyncGenerator<CsvRow> {
  // Loaded here, because no other command needs it.
  const { parse } = await import('csv-parse')
  const parser = parse({
    delimiter,
    record_delimiter: ['\r\n', '\n'],
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: maxOctets,
    info: true,
  })
  // A failure of the input ends the parser, whose reader then receives it.
  pipeline(Readable.from(boundedLines(input, maxOctets)), parser, () => undefined)
  try {
    for await (const { record, info } of parser as AsyncIterable<{ record: string[]; info: { lines: number } }>)
      yield { line: info.lines, cells: record }
  } catch (error) {
    throw refusalOf(error, maxOctets)
  }
}

const suggestion = 'Correct the line, and run the command again: entries that came already stay as they are'

function refusalOf(error: unknown, maxOctets: number): unknown {
  const { code, lines } = error as { code?: string; lines?: number }
  if (code === 'CSV_MAX_RECORD_SIZE')
    return new Refusal('validation_error', {
      message: `line ${lines}: the row is longer than ${maxOctets} octets: a quote may not be closed`,
      suggestion,
    })
  if (code === 'CSV_QUOTE_NOT_CLOSED')
    return new Refusal('validation_error', { message: `line ${lines}: the file ends within a quoted cell`, suggestion })
  return error
}

async function* boundedLines(input: AsyncIterable<Uint8Array>, maxOctets: number): AsyncGenerator<Uint8Array> {
  let line = 1
  let octets = 0
  for await (const chunk of input) {
    let from = 0
    for (;;) {
      const end = chunk.indexOf(lineFeed, from)
      octets += (end < 0 ? chunk.length : end) - from
      if (octets > maxOctets)
        throw new Refusal('validation_error', { message: `line ${line} is longer than ${maxOctets} octets`, suggestion })
      if (end < 0) break
      line++
      octets = 0
      from = end + 1
    }
    yield chunk
  }
}
