/**
 * What replies mean, as data: the first rule all of whose conditions hold decides. Phrases come first where servers are known to
 * send them with a code that says something else, above all with codes that look like the recipient's fault: such a recipient must
 * not be suppressed. test/corpus/replies.json holds real replies, each with its source, that these rules must understand.
 */
import type { ClassificationName, Fault } from './classifications.ts'

/** All conditions that are given must hold; of a list, one. */
export interface ReplyRule {
  classification: ClassificationName
  fault: Fault
  /** In the text: lower case, one space around words, without addresses and the codes before each line. */
  phrases?: readonly string[]
  /** The enhanced code without its class: `1.1` for 4.1.1 and 5.1.1 (RFC 3463 and the IANA's list); `7.*` for all that begin so. */
  subjects?: readonly string[]
  codes?: readonly number[]
  replies?: 'temporary' | 'permanent'
}

/** Phrases between bars or on lines of their own. */
const of = (text: string): readonly string[] =>
  text
    .split(/[|\n]/)
    .map((phrase) => phrase.trim())
    .filter((phrase) => phrase !== '')

export const replyRules: readonly ReplyRule[] = [
  // Blocks, whatever the code beside them.
  {
    classification: 'spam_block',
    fault: 'reputation',
    phrases: of(`
      spamhaus | spamcop | barracudacentral | uceprotect | dnsbl | sorbs.net | blocked using | blacklist | black list | blocklist
      block list | block-list | on our block | ipcheck.proofpoint | banned sending ip | banned sender | spam abuse detected
      low reputation | poor reputation | bad reputation | ip reputation | sender reputation | domain reputation | reputation of
      user complaints | [ts01] | [ts02] | [ts03] | [tss04] | [tss05] | (s3140) | (s3150) | unsolicited mail originating
      connections will not be accepted from | traffic not accepted from this ip | csi.cloudmark.com | sender denied as sender
      ip address has been blocked | ip has been blocked | ip is blocked | spam source | sends spam | sending spam
      blocked senders | outgoing blocked | in an rbl | client host blocked | sender has been blocked`),
  },
  {
    classification: 'spam_block',
    fault: 'content',
    phrases: of(`
      likely unsolicited | unsolicited message | unsolicited bulk | considered spam | considered to be spam | classified as spam
      identified as spam | detected as spam | marked as spam | flagged as spam | rejected as spam | refused as spam | looks like spam
      probability of spam | spam content | spam message rejected | spam detected | suspected spam | suspected as spam | spam score
      appears to be spam | appears to be unsolicited | is spam`),
  },

  // What passes, said with the code of a mailbox that is closed (Gmail: 450 4.2.1).
  {
    classification: 'temporarily_unavailable',
    fault: 'server',
    phrases: of(`
      receiving mail too quickly | receiving mail at a rate | recipient thread limit | greylist | graylist | grey list | greylisting
      unverified address | recipient deferred because | too much email`),
  },
  {
    classification: 'temporarily_unavailable',
    fault: 'reputation',
    phrases: of(`
      rate limit | ratelimit | rate-limit | too many connections | too many concurrent | too many messages | too many sessions
      too much mail | throttl | excessive volume | connection limit | concurrent connections | unexpected volume
      rate exceeded | unusual rate | unusually large number`),
  },

  {
    classification: 'tls_required',
    fault: 'ours',
    phrases: of(`
      issue a starttls | starttls first | starttls is required | starttls required | tls required | tls is required | requires tls
      require tls | must use tls | encryption required | encryption is required | requires encryption | requires a secure connection`),
  },
  { classification: 'policy_violation', fault: 'sender', phrases: ['sending quota', 'sending limit'] },
  {
    classification: 'mailbox_full',
    fault: 'recipient',
    phrases: of(`
      mailbox full | mailbox is full | mailfolder is full | mailbox for user is full | inbox is full | mailbox size limit | over quota | overquota
      over the quota | exceeds the quota | quota exceeded | quota limit | exceeded its quota | exceeded his quota | exceeded their quota | disk quota
      storage quota | out of storage | out of quota | exceeded storage | exceeded the storage | not enough storage space
      mailbox has exceeded the limit | user has exceeded`),
  },
  {
    classification: 'message_too_large',
    fault: 'content',
    phrases: of(`
      message size exceeds | message too large | message too big | message is too large | max message size | maximum message size
      size limit exceeded | exceeds fixed | exceeds size limit | message size limits | message size limit | exceeded the maximum size
      message file too big | message length exceeds | email size limit`),
  },

  // The sender's name and its DNS: before the recipient's, because "does not exist" is said of both.
  {
    classification: 'policy_violation',
    fault: 'sender',
    phrases: of(`
      dmarc | dkim | spf check | spf fail | spf validation | spf record | spf policy | spf authentication | failed spf | failing spf
      sender policy framework | unauthenticated email | unauthenticated mail | required authentication level
      authentication checks | sender address rejected | sender rejected | sender address blocked | sender verify failed
      could not verify sender | domain of sender | sender domain | sender's domain | invalid sender | verifying <>
      sender address is not | from address is not | missing a valid address in from | reverse dns | reverse hostname | rdns
      ptr record | no ptr | valid ptr | cannot find your hostname | helo command rejected | invalid helo | bad helo`),
  },
  {
    classification: 'policy_violation',
    fault: 'content',
    phrases: of(`
      virus | malware | phish | content examination | attachment type | blocked for security | security issue
      local policy | policy reasons | policy restrictions | security policies | infected | prohibited attachment | rfc 5322 | rfc5322 | suspicious | content policy | content rejected`),
  },
  {
    classification: 'policy_violation',
    fault: 'server',
    phrases: of(`
      relay access denied | relaying denied | relay denied | relay not permitted | relaying not allowed | relaying is not
      not permitted to relay | unable to relay | do not relay | rcpthosts | authentication required | authentication is required
      was not authenticated | sendernotauthenticated | not authorized to send | not allowed to send | not permitted
      restricted the sender | restrictedtorecipients | administrative prohibition | policy violation
      violates policy | email policy | against policy`),
  },

  // Recipients.
  {
    classification: 'not_accepting_mail',
    fault: 'recipient',
    phrases: of(`
      does not accept mail | does not accept email | doesn't accept mail | not accepting mail | not accepting email | nullmx | null mx
      no mail accepted | not accepting messages | domain does not receive mail`),
  },
  {
    classification: 'no_mailbox',
    fault: 'recipient',
    phrases: of(`
      mailbox disabled | mailbox is disabled | account disabled | account is disabled | account has been disabled | user disabled
      tried to reach is disabled | tried to reach is inactive | recipient is disabled | address is disabled | inactive user
      user is inactive | account is inactive | account inactive | mailbox inactive | mailbox is inactive | inactive email address
      account closed | user has moved | no longer on server | account suspended | suspended account | account has been suspended | mailbox suspended | mailbox has moved
      no longer available | no longer valid | no longer in use | no longer active | no longer exists | no longer works
      mailbox unavailable or access denied`),
  },
  {
    classification: 'invalid_recipient',
    fault: 'recipient',
    phrases: of(`
      user unknown | unknown user | unknown recipient | recipient unknown | unknown address | address unknown | unknown mailbox
      unknown local part | no such user | no such recipient | no such mailbox | no such address | no such person | no such account
      no such domain | no such local user | user not found | recipient not found | recipientnotfound | address not found
      mailbox not found | account not found | recipient address not found | does not exist | doesn't exist | do not exist
      not exist | doesn't have a | invalid recipient | invalid mailbox | invalid address | invalid user | address invalid
      marked as invalid | bad destination mailbox | not a valid mailbox | not a valid recipient | not a valid user
      no mailbox here | addressee unknown | no mailbox by that name | mailbox unavailable | undeliverable address | unrouteable address
      unroutable address | not our customer | recipient rejected | user rejected | not listed in | not a known user`),
  },
  // Microsoft refuses unknown recipients at its edge so, and says access denied.
  {
    classification: 'invalid_recipient',
    fault: 'recipient',
    phrases: ['recipient address rejected'],
    subjects: ['4.1'],
    replies: 'permanent',
  },

  { classification: 'spam_block', fault: 'content', phrases: [' spam ', 'junk'] },

  {
    classification: 'protocol_error',
    fault: 'server',
    phrases: of(`hop count exceeded | too many hops | mail loop | routing loop | loops back to`),
  },
  { classification: 'protocol_error', fault: 'server', subjects: ['4.6', '4.14'] },

  // Enhanced codes that mean one thing.
  { classification: 'invalid_recipient', fault: 'recipient', subjects: ['1.1', '1.2', '1.3', '1.4', '1.10'] },
  { classification: 'no_mailbox', fault: 'recipient', subjects: ['1.6', '2.1', '7.13', '7.17', '7.18'] },
  { classification: 'mailbox_full', fault: 'recipient', subjects: ['2.2'] },
  { classification: 'message_too_large', fault: 'content', subjects: ['2.3', '3.4', '7.16'] },
  { classification: 'tls_required', fault: 'ours', subjects: ['7.10', '7.11', '7.30'] },
  {
    classification: 'policy_violation',
    fault: 'sender',
    subjects: ['1.7', '1.8', '7.20', '7.21', '7.22', '7.23', '7.24', '7.25', '7.26', '7.27', '7.29', '7.509', '7.515'],
  },
  { classification: 'spam_block', fault: 'reputation', subjects: ['7.28', '7.501', '7.502', '7.503', '7.511', '7.708'] },
  { classification: 'dns_error', fault: 'server', subjects: ['4.3', '4.4'] },

  // Phrases that say little.
  {
    classification: 'temporarily_unavailable',
    fault: 'server',
    phrases: of(`
      try again later | try later | retry later | temporarily | temporary | server busy | service unavailable | service not available
      server is busy | insufficient system | system load | internal error | local error | local problem | lookup failure
      server configuration error | too busy | unable to process connection`),
  },
  {
    classification: 'dns_error',
    fault: 'server',
    phrases: of(`host or domain name not found | domain not found | host not found | unable to resolve | dns error | dns lookup`),
  },
  {
    classification: 'protocol_error',
    fault: 'ours',
    phrases: of(`
      syntax error | bad sequence | protocol violation | command not recognized | unrecognized command | command unrecognized
      not implemented | need rcpt | need mail | need full`),
  },

  // Enhanced codes that say little.
  { classification: 'temporarily_unavailable', fault: 'server', replies: 'temporary', subjects: ['7.0', '7.1'] },
  { classification: 'policy_violation', fault: 'unknown', subjects: ['7.*'] },
  {
    classification: 'temporarily_unavailable',
    fault: 'server',
    subjects: of(`3.0|3.1|3.2|3.3|3.5|4.0|4.1|4.2|4.5|4.7`),
    replies: 'temporary',
  },
  { classification: 'protocol_error', fault: 'ours', subjects: of(`5.0|5.1|5.2|5.4|5.5|5.6|6.0|6.1|6.2|6.3|6.4|6.5|6.6|6.7|6.8|6.9|6.10`) },

  // Basic codes (RFC 5321 section 4.2.3, RFC 7504, RFC 4954); 550, 553 and 554 are used for everything and so mean nothing.
  { classification: 'policy_violation', fault: 'ours', codes: [530, 535] },
  { classification: 'tls_required', fault: 'ours', codes: [523, 538] },
  { classification: 'mailbox_full', fault: 'recipient', codes: [422, 552] },
  { classification: 'not_accepting_mail', fault: 'recipient', codes: [521, 556] },
  { classification: 'invalid_recipient', fault: 'recipient', codes: [551] },
  { classification: 'protocol_error', fault: 'ours', codes: [500, 501, 502, 503, 504, 555] },
  { classification: 'temporarily_unavailable', fault: 'server', replies: 'temporary' },
]
