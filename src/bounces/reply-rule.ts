/**
 * The form of a rule, and the synonyms for its patterns.
 */
import type { ClassificationName, Fault } from './classifications.ts'

/** All given conditions must hold; of a list, one member. */
export interface ReplyRule {
  classification: ClassificationName
  fault: Fault
  /** One of these, in lower case, must occur in the unchanged reply: it identifies the author. */
  marks?: readonly string[]
  /** Patterns, one on each line, in the syntax of `patternsOf` (reply-patterns.ts). */
  text?: string
  /** The enhanced code without its class: `1.1` for 4.1.1 and 5.1.1 (RFC 3463 and the IANA's list); `7.*` for all that begin so. */
  subjects?: readonly string[]
  codes?: readonly number[]
  replies?: 'temporary' | 'permanent'
}

/** Synonyms, used in patterns as {name}. */
export const synonyms: Readonly<Record<string, string>> = {
  someone: `user|users|username|user name|userid|user id|mailbox|mailboxes|account|accounts|recipient|recipients|address|addresses
    |addressee|alias|local part|localpart|customer|subscriber|person|inbox|rcpt|email|mail|maildrop|member|mailuser|rcpt to`,
  mailbox:
    'mailbox|mailboxes|account|accounts|user|users|recipient|recipients|inbox|addressee|mailfolder|mail folder|maildir|maildrop|email',
  gone: `unknown|not known|not found|not be found|not exist*|nonexist*|non exist*|inexist*|never existed|invalid|not valid|not a valid
    |not recognized|not recognised|unrecognized|undeliverable|unroutable|unrouteable|undefined|incorrect|misspelled|not listed
    |not registered|not defined|not a registered|not a known|not present|not on this|not local|not a local|not here|not deliverable
    |not handled|not unique|no exist*|not have a|not have an|not a customer|not hosted|not configured|userunknown|unknownuser`,
  off: `disabled|inactive|deactivated|suspended|closed|deleted|removed|terminated|expired|frozen|locked|cancelled|canceled|discontinued
    |archived|abandoned|retired|dormant|deprovisioned|not active|not enabled|not activated|not an active|no longer|has moved|moved to
    |has been moved|out of service|obsolete|has left|left the company|decommissioned`,
  listed: 'blacklist*|blocklist*|blocked|block listed|black listed|listed|banned|denylist*|found in|found on|barred',
  list: `dnsbl|rbl|dnsbls|rbls|rbldns|spamhaus|spamcop|sorbs|barracuda|cloudmark|senderbase|uceprotect|blacklist|blacklists|black list
    |black lists|blocklist|blocklists|block list|block lists|denylist|deny list|spam list|realtime block|real time block|spammer list
    |pbl|xbl|sbl|cbl|blackhole list|blackhole lists|black hole list`,
  peer: 'ip|ips|client|host|hosts|server|servers|mta|network|remotehost|relay|connection|connections|mailserver|#',
  sender: `sender|senders|mail from|mailfrom|from address|from domain|from header|envelope from|envelope sender|return path|reverse path
    |originator|from email|sending domain|sending address|rfc 5321 from|rfc 5322 from|rfc5321 from|rfc5322 from`,
  sent: 'message|messages|mail|mails|email|emails|msg',
  refused: `rejected|refused|denied|blocked|not accepted|not allowed|not permitted|prohibited|disallowed|forbidden|declined|bounced|banned
    |unacceptable`,
}
