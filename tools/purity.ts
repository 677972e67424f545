/**
 * Checks that time, randomness and the environment are parameters: reports code that reads them from the machine outside the few permitted
 * files. Uses the syntax tree, so comments and strings do not count.
 */
import { importsOf, isNode, memberOf, nameOf, nodesOf, type Problem, placeOf, type SourceFile, type SyntaxNode } from './source-files.ts'

interface Ban {
  rule: string
  /** The permitted files. */
  except: string[]
  /** Permitted in tests, which measure the cost of a parser. */
  allowedInTests?: true
  says: string
}

const clock: Ban = { rule: 'time-is-a-parameter', except: ['src/base/clock.ts'], says: 'take a Clock (#base) or the value as a parameter' }
const random: Ban = { rule: 'randomness-is-a-parameter', except: ['src/base/ids.ts'], says: 'take Ids or Random (#base) as a parameter' }
const environment: Ban = {
  rule: 'environment-is-read-once',
  except: ['src/base/config.ts', 'src/main.ts', 'src/main/process.ts'],
  says: 'add a setting to its area (src/base/…-settings.ts) and take it as a parameter',
}

const members: Record<string, Ban> = {
  'Date.now': clock,
  'performance.now': { ...clock, allowedInTests: true },
  'process.hrtime': clock,
  'AbortSignal.timeout': clock,
  'globalThis.setTimeout': clock,
  'globalThis.setInterval': clock,
  'Math.random': random,
  'crypto.getRandomValues': random,
  'crypto.randomBytes': random,
  'crypto.randomUUID': random,
  'process.env': environment,
}

const calls: Record<string, Ban> = { setTimeout: clock, setInterval: clock, Date: clock }

const imported: Record<string, Record<string, Ban>> = {
  'node:timers': { '*': clock },
  'node:timers/promises': { '*': clock },
  'node:perf_hooks': { performance: clock },
  'node:process': { env: environment, hrtime: clock },
  'node:crypto': {
    getRandomValues: random,
    randomBytes: random,
    randomFill: random,
    randomFillSync: random,
    randomInt: random,
    randomUUID: random,
    randomUUIDv7: random,
  },
}

export function checkWorld(files: SourceFile[]): Problem[] {
  return files.flatMap((file) => {
    const problems: Problem[] = []
    const refuse = (ban: Ban | undefined, what: string, node: SyntaxNode) => {
      if (ban && !ban.except.includes(file.path) && !(ban.allowedInTests && file.isTest))
        problems.push({ rule: ban.rule, at: placeOf(file, node), says: `${what}: ${ban.says}` })
    }
    for (const node of nodesOf(file.tree)) {
      if (node.type === 'MemberExpression') {
        const path = `${nameOf(node.object)}.${memberOf(node)}`
        if (Object.hasOwn(members, path)) refuse(members[path], path, node)
      } else if (node.type === 'VariableDeclarator') {
        for (const name of boundNames(node.id)) refuse(members[`${nameOf(node.init)}.${name}`], `${nameOf(node.init)}.${name}`, node)
      } else if (node.type === 'CallExpression') {
        const name = nameOf(node.callee) ?? ''
        if (Object.hasOwn(calls, name)) refuse(calls[name], `${name}()`, node)
      } else if (node.type === 'NewExpression' && nameOf(node.callee) === 'Date') {
        if (!Array.isArray(node.arguments) || node.arguments.length === 0) refuse(clock, 'new Date()', node)
      }
    }
    for (const { specifier, node } of importsOf(file)) {
      const bans = imported[specifier] ?? imported[`node:${specifier}`]
      for (const [name, ban] of Object.entries(bans ?? {})) {
        if (name === '*' || importedNames(node).includes(name)) refuse(ban, name === '*' ? specifier : `${name} from ${specifier}`, node)
      }
    }
    return problems
  })
}

/** The names of an import declaration, without types. */
function importedNames(declaration: SyntaxNode): string[] {
  const specifiers = Array.isArray(declaration.specifiers) ? declaration.specifiers : []
  return specifiers.flatMap((specifier: unknown) =>
    isNode(specifier) ? [nameOf(specifier.imported) ?? nameOf(specifier.local) ?? ''] : [],
  )
}

/** `now` and `random` of `const { now, random: draw } = …`. */
function boundNames(pattern: unknown): string[] {
  if (!isNode(pattern) || pattern.type !== 'ObjectPattern' || !Array.isArray(pattern.properties)) return []
  return pattern.properties.flatMap((property: unknown) => (isNode(property) ? [nameOf(property.key) ?? ''] : []))
}
