/** XML of the AWS Query protocol, version 2010-12-01 of SES: results and errors. */

const namespace = 'http://ses.amazonaws.com/doc/2010-12-01/'

/** Characters that XML 1.0 section 2.2 does not have; a text that a caller sent may contain them. */
const unfit = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g
const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\r': '&#xD;' }

const escaped = (text: string) =>
  text
    .toWellFormed()
    .replace(unfit, '\ufffd')
    .replace(/[&<>"\r]/g, (character) => entities[character] as string)

/** Text, or elements in order by name; an array repeats its element. */
export type XmlValue = string | number | boolean | { readonly [name: string]: XmlValue | readonly XmlValue[] }

function contentOf(value: XmlValue): string {
  if (typeof value !== 'object') return escaped(String(value))
  return Object.entries(value)
    .map(([name, inside]) => (Array.isArray(inside) ? inside : [inside]).map((one: XmlValue) => element(name, one)).join(''))
    .join('')
}

/** Names are constants of the program. */
const element = (name: string, value: XmlValue) => `<${name}>${contentOf(value)}</${name}>`

const documentOf = (name: string, value: XmlValue) => `<${name} xmlns="${namespace}">${contentOf(value)}</${name}>\n`

/** The answer to an action; `result` undefined: an action without a result. */
export const xmlResult = (action: string, result: XmlValue | undefined, requestId: string): string =>
  documentOf(`${action}Response`, {
    ...(result === undefined ? {} : { [`${action}Result`]: result }),
    ResponseMetadata: { RequestId: requestId },
  })

interface ShownError {
  name: string
  message: string
  requestId: string
  isOfSender: boolean
}

export const xmlError = ({ name, message, requestId, isOfSender }: ShownError): string =>
  documentOf('ErrorResponse', {
    Error: { Type: isOfSender ? 'Sender' : 'Receiver', Code: name, Message: message },
    RequestId: requestId,
  })
