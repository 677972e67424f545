/**
 * What replies mean, as data: the first rule that matches decides. Texts that name a block come before everything else, because
 * servers send them with codes that look like the recipient's fault; suppressing such a recipient would be wrong.
 */
import type { ClassificationName } from './bounces.ts'

export interface ReplyRule {
  classification: ClassificationName
  /** Any of these in the text, lower case. */
  texts?: readonly string[]
  /** Any of these as the end of the enhanced code, without its class: `1.1` for 4.1.1 and 5.1.1. */
  subjects?: readonly string[]
  /** Any of these as the reply code. */
  codes?: readonly number[]
}

export const replyRules: readonly ReplyRule[] = [
  {
    classification: 'spam_block',
    texts: ['spamhaus', 'spamcop', 'barracudacentral', 'blacklist', 'blocklist', 'block list', 'block listed', 'dnsbl', 'considered spam', 'identified as spam', 'detected as spam', 'spam content', 'spam message rejected', 'looks like spam', 'likely unsolicited', 'unsolicited mail', 'unsolicited message', 'poor reputation', 'low reputation', 'bad reputation', 'reputation of the sending', 'sender reputation', 'our system has detected that this message is', 'banned sending ip', 'high probability of spam', 'message refused as spam', 's3140', 's3150', 'ts01)', 'ts02)', 'ts03)', 'spam detected', 'rejected as spam', 'content rejected due to spam'],
  },
  {
    classification: 'tls_required',
    texts: ['must issue a starttls', 'tls required', 'requires tls', 'encryption required', 'starttls is required', 'starttls first', 'must use tls'],
  },
  {
    classification: 'message_too_large',
    texts: ['message size exceeds', 'message too large', 'message too big', 'exceeded max message size', 'size limit exceeded', 'exceeds fixed limit', 'exceeds maximum message size', 'exceeds size limit', 'message exceeds', 'too large for this'],
  },
  {
    classification: 'mailbox_full',
    texts: ['mailbox full', 'mailbox is full', 'over quota', 'overquota', 'quota exceeded', 'exceeded storage', 'out of storage', 'out of quota', 'inbox is full', 'insufficient storage for', 'storage quota', 'exceeded its quota', 'exceeded his quota', 'mailbox size limit', 'user has exceeded'],
  },
  {
    classification: 'policy_violation',
    texts: ['dmarc', 'spf check', 'spf fail', 'dkim', 'unauthenticated email', 'unauthenticated mail', 'not authenticated', 'sender address rejected', 'sender rejected', 'not permitted', 'violates policy', 'policy violation', 'against policy', 'relay access denied', 'relaying denied', 'relay not permitted', 'unable to relay', 'not allowed to send', 'reverse dns', 'ptr record', 'no ptr', 'helo command rejected', 'virus', 'malware'],
  },
  {
    classification: 'not_accepting_mail',
    texts: ['does not accept mail', 'not accepting mail', 'not accept mail', 'no mail accepted', 'nullmx', 'null mx', 'not receiving mail', 'mailbox not accepting'],
  },
  {
    classification: 'no_mailbox',
    texts: ['mailbox disabled', 'account disabled', 'account is disabled', 'user disabled', 'mailbox is disabled', 'inactive user', 'account inactive', 'mailbox inactive', 'account has been disabled', 'account that you tried to reach is disabled', 'account that you tried to reach is inactive', 'account closed', 'suspended account', 'account suspended', 'mailbox has moved', 'no longer available', 'no longer valid', 'no longer in use', 'user is inactive'],
  },
  {
    classification: 'invalid_recipient',
    texts: ['user unknown', 'unknown user', 'no such user', 'no such recipient', 'no such mailbox', 'no such address', 'no such person', 'unknown recipient', 'recipient unknown', 'recipient not found', 'user not found', 'address not found', 'mailbox not found', 'account that you tried to reach does not exist', 'does not exist', "doesn't exist", "doesn't have a", 'invalid recipient', 'recipient address rejected: undeliverable', 'invalid mailbox', 'unknown address', 'bad destination mailbox', 'mailbox unavailable', 'unrouteable address', 'unroutable address', 'unknown local part', 'not a valid mailbox', 'no mailbox here', 'no mailbox by that name', 'address unknown', 'not our customer', 'user doesn', 'recipientnotfound', 'invalid address', 'not listed in', 'unknown mailbox', 'undeliverable address', 'recipient rejected'],
  },
  {
    classification: 'temporarily_unavailable',
    texts: ['greylist', 'graylist', 'grey listed', 'try again later', 'try later', 'temporarily deferred', 'temporarily unavailable', 'too many connections', 'rate limit', 'too many messages', 'throttl', 'resources temporarily', 'server busy', 'service unavailable', 'service not available', 'system load', 'temporary failure', 'internal error', 'local error', 'temporary local problem', 'insufficient system', 'connection rate'],
  },
  { classification: 'dns_error', texts: ['host or domain name not found', 'domain not found', 'unable to resolve', 'dns error', 'dns lookup', 'domain of sender address'] },
  { classification: 'protocol_error', texts: ['syntax error', 'bad sequence', 'command not recognized', 'unrecognized command', 'not implemented', 'need rcpt', 'need mail'] },
  { classification: 'invalid_recipient', subjects: ['1.0', '1.1', '1.2', '1.3', '1.10'] },
  { classification: 'no_mailbox', subjects: ['1.6', '2.1'] },
  { classification: 'mailbox_full', subjects: ['2.2'] },
  { classification: 'message_too_large', subjects: ['2.3', '3.4'] },
  { classification: 'tls_required', subjects: ['7.10', '7.30'] },
  { classification: 'policy_violation', subjects: ['1.7', '1.8', '7.0', '7.1', '7.2', '7.3', '7.4', '7.5', '7.6', '7.7', '7.8', '7.9', '7.20', '7.21', '7.22', '7.23', '7.24', '7.25', '7.26', '7.27', '7.28', '7.29'] },
  { classification: 'dns_error', subjects: ['4.3', '4.4'] },
  { classification: 'temporarily_unavailable', subjects: ['2.0', '2.4', '3.0', '3.1', '3.2', '3.3', '3.5', '4.0', '4.1', '4.2', '4.5', '4.6', '4.7'] },
  { classification: 'protocol_error', subjects: ['5.0', '5.1', '5.2', '5.3', '5.4', '5.5', '6.0', '6.1', '6.2', '6.3', '6.5', '6.6', '6.7'] },
  { classification: 'tls_required', codes: [530, 523, 538] },
  { classification: 'mailbox_full', codes: [552] },
  { classification: 'temporarily_unavailable', codes: [421, 450, 451, 452] },
  { classification: 'not_accepting_mail', codes: [521, 556] },
  { classification: 'protocol_error', codes: [500, 501, 502, 503, 504, 555] },
]
