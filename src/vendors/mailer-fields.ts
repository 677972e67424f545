/** Header fields that mail libraries add to every message. */

const names: ReadonlySet<string> = new Set(['date', 'message-id', 'mime-version'])

/**
 * Whether a library writes the field into every message, so that its value is no wish of the caller's: Postrider writes its own. The vendors
 * overwrite these fields too.
 */
export const isMailerField = (name: string): boolean => names.has(name.toLowerCase()) || name.toLowerCase().startsWith('content-')
