/** Times as values of fields of the browser's local time, which have no zone. */

const minuteMs = 60_000

export function localTimeOf(iso: string): string {
  const at = new Date(iso)
  return new Date(at.getTime() - at.getTimezoneOffset() * minuteMs).toISOString().slice(0, 16)
}
