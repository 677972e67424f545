/**
 * Removes C0 controls and spaces at both ends of a URL, as a browser does. A loop, because a regular expression would try each space of a
 * run again.
 */
export function trimmedUrl(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && text.charCodeAt(start) <= 32) start++
  while (end > start && text.charCodeAt(end - 1) <= 32) end--
  return text.slice(start, end)
}
