/**
 * Addresses of routes: exact, with one `*` for any text, or `*` alone for every address of the domain. The most exact route of an address
 * gets its mail.
 */
import { wrongField } from '#base'
import { parseAddress } from '#mail'

export interface RoutePattern {
  /** Lower case; may contain one `*`. */
  local: string
  /** Lower-case A-labels. */
  domain: string
}

const wildcard = '*'

/** The text for which the star of a pattern stands in a local part that it matches; '' without a star. */
export function starText(pattern: string, local: string): string {
  const star = pattern.indexOf(wildcard)
  return star < 0 ? '' : local.slice(star, local.length - (pattern.length - star - 1))
}

/** The local part of a pattern with a text in place of its star. */
export const withStar = (pattern: string, text: string): string => pattern.replace(wildcard, () => text)

/** Reads the address of a route; refuses `validation_error`. */
export function routePattern(text: string): RoutePattern {
  const at = text.lastIndexOf('@')
  const local = text.slice(0, Math.max(0, at)).toLowerCase()
  const stars = local.split(wildcard).length - 1
  if (stars > 1) throw wrongField('address', 'must not have more than one *')
  // With a letter in place of the star, the text must be an address.
  const address = parseAddress(`${local.replace(wildcard, 'x')}@${text.slice(at + 1)}`)
  if (!address || local.startsWith('"'))
    throw wrongField('address', 'must be an address such as help@mail.example.com, orders+*@mail.example.com or *@mail.example.com')
  return { local, domain: address.domain }
}

/** The recipient of an envelope; undefined if no route can match it. A quoted local part is another spelling of an address, or not plain. */
export function routedAddress(text: string): RoutePattern | undefined {
  const address = parseAddress(text)
  return !address || address.local.startsWith('"') ? undefined : { local: address.local.toLowerCase(), domain: address.domain }
}

/** The exact route, else the wildcard with the longest text. `local`: lower case. */
export function matchRoute<Route extends { local: string }>(routes: readonly Route[], local: string): Route | undefined {
  let best: Route | undefined
  for (const route of routes) {
    if (!matches(route.local, local)) continue
    if (route.local === local) return route
    if (!best || route.local.length > best.local.length) best = route
  }
  return best
}

function matches(pattern: string, local: string): boolean {
  const star = pattern.indexOf(wildcard)
  if (star < 0) return pattern === local
  const [start, end] = [pattern.slice(0, star), pattern.slice(star + 1)]
  return local.length >= start.length + end.length && local.startsWith(start) && local.endsWith(end)
}
