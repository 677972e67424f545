/** The thread that reads large contents. */
import { openSecrets, serveTasks, systemRandom } from '#base'
import { openTokens, type Tokens } from '#tracking'
import type { ContentThreadTask } from './content-reader.ts'
import { readContent } from './read-content.ts'

/** Smaller buffers are copied, which is cheap: they may share memory of Node that cannot be transferred. */
const transferredOctets = 1_048_576

let known: { secret: string; tokens: Tokens } | undefined

function tokensOf(secret: string): Tokens {
  if (known?.secret !== secret) known = { secret, tokens: openTokens(openSecrets(secret, systemRandom)) }
  return known.tokens
}

/** The octets in a result that are worth transferring. */
function buffersIn(result: ReturnType<typeof readContent>): Buffer[] {
  if ('octets' in result) return [result.octets]
  if (!('parts' in result)) return []
  return [...(result.parts.attachments ?? []).map(({ content }) => content), ...(result.sent ? [result.sent.octets] : [])]
}

serveTasks(({ secret, ...task }: ContentThreadTask) => {
  const result = readContent(task, tokensOf(secret))
  const transfer = buffersIn(result)
    .filter((one) => one.length >= transferredOctets)
    .map((one) => one.buffer as ArrayBuffer)
  return { result, transfer: [...new Set(transfer)] }
})
