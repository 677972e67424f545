/**
 * DKIM and ARC: signs messages, verifies the signatures of received messages, continues their chains, and creates keys and their DNS text.
 * Owns: no tables. Uses: base. Used by: domains, delivery, returns, domain-reports, received-mail, webhooks,
 * imports.
 * Promises: the same message, keys and time give the same signatures; important header fields cannot be added afterwards.
 */
export { arcChainOf, type ChainStatus, chainStatus, type FoundChain } from './arc-chain.ts'
export { arcSetFields, type Sealable, sealableOf, takesAnotherSet } from './arc-seal.ts'
export { dnsText, type KeyPair, makeEd25519Key, makeRsaKey, readRsaKey, rsaBitsOf, type SigningKey } from './keys.ts'
export { type Signable, signableOf, signatureFields, signatureFieldsOf } from './sign.ts'
export {
  type DkimVerdict,
  type FoundSignature,
  holdsWithKey,
  signaturesOf,
  type Unjudged,
  unjudged,
  verifySignatures,
} from './verify.ts'
