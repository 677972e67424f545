/**
 * The API of Amazon SES, versions 2 and 1: reads its requests and signatures as submissions and changes, and writes its objects and errors.
 * Owns: no tables. Uses: base, mail, domains, suppressions, accept, vendors. Used by: http.
 * Promises: a field, parameter or action is either served or refused in SES's form; a signature is compared in constant time; reading takes
 * time in proportion to the text.
 */
export { SesRefusal, sesFailure, xmlType } from './errors.ts'
export { noSuchIdentity, sesAccount, sesIdentity, sesIdentityItem, sesQuota, verificationAttributes } from './identities.ts'
export { readQueryForm } from './query-form.ts'
export { readIdentityNames, readIdentityPage, readQueryAction, refuseParameters } from './query-parameters.ts'
export { type XmlValue, xmlResult } from './query-xml.ts'
export { readSesEmail, readSesQueryEmail, readSesQueryRawEmail, type SesMail } from './read-message.ts'
export {
  canonicalHeaders,
  isPresigned,
  isSignedWith,
  noMatch,
  readSignature,
  type SignedRequest,
  unknownAccessKey,
} from './signature.ts'
export {
  readSesIdentityFilter,
  readSesPage,
  readSesSuppression,
  readSesSuppressionPage,
  type SesIdentityPage,
  sesSuppressed,
  sesSuppression,
  sesToken,
} from './suppression-objects.ts'
