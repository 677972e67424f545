/** The text of base64 in JSON and forms, as the encoders of several languages write it. */

/** Base64 without the line ends and spaces that encoders of Ruby, PHP and others add. Takes time in proportion to the text. */
export const withoutSpaces = (base64: string): string => (/\s/.test(base64) ? base64.replace(/\s+/g, '') : base64)
