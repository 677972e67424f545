/**
 * Codes and phrases that single providers use in a way of their own, each with its source. A pattern of words that only the provider
 * writes needs no mark; a pattern that others write too names a mark that identifies the provider.
 */
import type { ReplyRule } from './reply-rule.ts'

const msUnknown = ['recipient address rejected: access denied', 'recipient addresses rejected : access denied']

export const rulesOfProviders: readonly ReplyRule[] = [
  // Gmail: support.google.com/a/answer/3726730. Its 4.7.29 is TLS and its 5.7.30 is DKIM, unlike the IANA's list.
  {
    classification: 'tls_required',
    fault: 'ours',
    text: 'not sent over a tls\ntls required for rcpt domain',
  },
  { classification: 'tls_required', fault: 'ours', marks: ['gsmtp', 'gmail requires'], subjects: ['7.29'] },
  {
    classification: 'policy_violation',
    fault: 'sender',
    marks: ['gsmtp', 'gmail requires'],
    subjects: ['7.23', '7.27', '7.30', '7.31', '7.32', '7.40'],
  },
  { classification: 'spam_block', fault: 'reputation', text: 'not authorized to send email directly' },
  {
    classification: 'policy_violation',
    fault: 'content',
    text: 'unicode character in a disallowed\nencoded word syntax\nmail message is malformed\nexceeds google limit of\nheader size limit*',
  },
  { classification: 'temporarily_unavailable', fault: 'server', text: '(receivingrateperm|receivingrate)' },
  { classification: 'temporarily_unavailable', fault: 'reputation', text: 'quota for sending messages with the same\npeak smtp relay' },

  // Microsoft: learn.microsoft.com, "NDR error codes" and "Fix email delivery issues for error code 5.7.xxx"; sendersupport.olc.protection.
  {
    classification: 'temporarily_unavailable',
    fault: 'reputation',
    text: 'we have limits for how many\n(exceeded|per hour) .. (permitted limits|message receive limit)\nper hour message receive limit',
  },
  {
    classification: 'spam_block',
    fault: 'reputation',
    text: 'bad outbound sender\ntenant has exceeded threshold\nspam abuse detected\nsending from unregistered domains',
  },
  { classification: 'policy_violation', fault: 'ours', subjects: ['1.90'], marks: ['limit'] },
  {
    classification: 'policy_violation',
    fault: 'ours',
    text: 'daily limit for message recipients\nsubmission quota exceeded\nclient was not authenticated to send\nunusual sending activity',
  },
  {
    classification: 'policy_violation',
    fault: 'recipient',
    text: `
      sender not in allowed senders
      sender not authenticated for
      sender was not authenticated
      rejected by recipient
      not accept email over`,
  },
  {
    classification: 'policy_violation',
    fault: 'recipient',
    subjects: ['7.12', '7.124', '7.133', '7.134', '7.135', '7.136', '7.193', '7.507'],
  },
  { classification: 'policy_violation', fault: 'content', subjects: ['6.11', '7.512'] },
  { classification: 'tls_required', fault: 'server', subjects: ['7.321', '7.322', '7.323', '7.324', '7.325', '4.317'] },
  { classification: 'invalid_recipient', fault: 'recipient', subjects: ['1.351'] },
  {
    classification: 'not_accepting_mail',
    fault: 'recipient',
    text: 'no mail enabled subscriptions\naccount inbounds disabled',
  },
  // Microsoft's edge refuses unknown recipients with "access denied".
  { classification: 'invalid_recipient', fault: 'recipient', subjects: ['4.1'], marks: msUnknown, replies: 'permanent' },

  // Yahoo and AOL: senders.yahooinc.com/smtp-error-codes, the former postmaster.aol.com/error-codes.
  {
    classification: 'spam_block',
    fault: 'reputation',
    text: '(tss04|tss05|tss07|tss09|tss11|ts01|ts02|ts03|ts04|ipts04|bl21|bl23)\n(rtr:bb|rtr:du|rtr:sc|rtr:bl|rtr:ch|rly:b2|rly:bl|rly:ch|rly:ir|con:b1|hvu:b2|rly:b1)\nvs1 (ip|mf)',
  },
  { classification: 'policy_violation', fault: 'content', text: '(ph01|hvu:b1|rly:bd|mff)' },
  { classification: 'policy_violation', fault: 'sender', text: '(au01|rtr:rd|rly:sn)' },
  { classification: 'temporarily_unavailable', fault: 'reputation', text: '(dyn:t1|dyn:t2)\nmax message per connection' },

  // United Internet (GMX, WEB.DE, mail.com, 1&1): postmaster.gmx.net/en/error-messages.
  { classification: 'policy_violation', fault: 'content', text: '(reject due to policy restrictions|message content .. policy)' },
  { classification: 'policy_violation', fault: 'sender', text: 'invalid dns mx\n(resource record|bad dns)\nsender address is not allowed' },
  // T-Online: postmaster.t-online.de; it refuses the address before any command.
  { classification: 'spam_block', fault: 'reputation', text: 'a problem occurred .. contact\na problem occurred . ask your postmaster' },

  // Apple: support.apple.com/en-us/102322; the content is refused, although the text says policy.
  { classification: 'policy_violation', fault: 'content', text: '(cs01|cs02|hm07|hm08|hm30)\nrejected due to local policy .. url' },
  { classification: 'policy_violation', fault: 'content', marks: ['support.apple.com'], text: 'local policy' },

  // QQ and Tencent Exmail: service.mail.qq.com/detail/122.
  {
    classification: 'temporarily_unavailable',
    fault: 'server',
    text: 'mailbox unavailable or access (denied|denined)',
  },
  { classification: 'temporarily_unavailable', fault: 'reputation', text: 'frequency limited' },
  { classification: 'policy_violation', fault: 'recipient', text: 'mail is rejected by recipients' },
  { classification: 'spam_block', fault: 'content', text: 'mail content denied\nspam is embedded' },
  { classification: 'spam_block', fault: 'reputation', text: '(suspected bounce attacks|connection denied|suspected spam)' },

  // NetEase 163, 126, yeah.net: help.163.com, the table of returned mail codes.
  { classification: 'spam_block', fault: 'content', text: '(dt:spm|dt:sum|dt:spb)' },
  { classification: 'spam_block', fault: 'reputation', text: '(hl:rep|hl:mep|dt:rbl|wm:bli|wm:blu|hl:ref)' },
  {
    classification: 'temporarily_unavailable',
    fault: 'reputation',
    text: '(hl:icc|hl:ifc|hl:itc|hl:ihu|hl:isc|mi:dmc|mi:sfq|mi:fcr|mi:stc|mi:imf|mi:ccl|mi:cel|rp:drc|rp:qrc|rp:ccl|rp:cel|rp:frl|rp:rcl|rp:trc|rp:tyl)',
  },
  { classification: 'policy_violation', fault: 'sender', text: '(mi:spf|mi:dma|mi:nhd|mi:nhf|mi:sps|mi:dkm|rp:spf)' },
  { classification: 'policy_violation', fault: 'server', text: '(mi:nha|mi:cba|rp:nha)' },

  // Orange, Wanadoo, Laposte.net, SFR: postmaster.orange.fr; the number after the underscore is the reason.
  { classification: 'spam_block', fault: 'reputation', text: '(ofr*_101|ofr*_102|lpn*_101|lpn*_102|lpnaaa_101)' },
  {
    classification: 'temporarily_unavailable',
    fault: 'reputation',
    replies: 'temporary',
    text: '(ofr*_103|ofr*_104|ofr*_105|ofr*_108|ofr*_109|ofr*_201|ofr*_999|lpn*_103|lpn*_104|lpn*_105|lpn*_107|lpn*_108|lpn*_109|lpn*_510)',
  },
  {
    classification: 'spam_block',
    fault: 'reputation',
    replies: 'permanent',
    text: '(ofr*_103|ofr*_108|ofr*_109|ofr*_999|lpn*_103|lpn*_105|lpn*_107|lpn*_108|lpn*_109|lpn*_510)',
  },
  {
    classification: 'policy_violation',
    fault: 'sender',
    text: '(ofr*_401|lpn*_401|ofr*_403|lpn*_403|ofr*_405|lpn*_405|ofr*_415|lpn*_415|lpn*_421|ofr*_517|lpn*_517)',
  },
  { classification: 'spam_block', fault: 'content', text: '(ofr*_506|ouk*_506|lpn*_506|ofr*_513|ouk*_513|lpn*_513)' },
  { classification: 'no_mailbox', fault: 'recipient', text: '(ofr*_420|lpn*_420|ofr*_426|lpn*_426)' },
  { classification: 'message_too_large', fault: 'content', text: '(ofr*_514|lpn*_514)' },

  // Cox and Spectrum (cox.com, spectrum.net: email error codes), Comcast (postmaster.comcast.net/mail-error-codes).
  { classification: 'spam_block', fault: 'reputation', text: '(cxbl|cdrbl|ipbl*|cxthrt|cxmj)' },
  { classification: 'spam_block', fault: 'reputation', marks: ['bl0000', 'es0000'] },
  { classification: 'policy_violation', fault: 'sender', text: '(cxdns|cxsndr)' },
  { classification: 'policy_violation', fault: 'sender', marks: ['pt0000'] },
  { classification: 'temporarily_unavailable', fault: 'reputation', text: '(cxcnct|cxmxrt)' },
  { classification: 'temporarily_unavailable', fault: 'reputation', marks: ['rl0000'] },
  { classification: 'spam_block', fault: 'content', text: 'urlbl*' },
  { classification: 'spam_block', fault: 'reputation', text: 'dnsbl attrbl\ndnsbl rbl' },

  // GoDaddy (godaddy.com/help/what-does-my-email-bounceback-mean-3568).
  { classification: 'spam_block', fault: 'reputation', text: '(ib103|ib104|ib105|ib106|ib112|ib113)' },
  { classification: 'temporarily_unavailable', fault: 'reputation', text: '(ib007|ib101|ib110|ib111|ib504|ib510|ib607)' },
  { classification: 'policy_violation', fault: 'sender', text: '(ib108|ib501|ib502|ib504|ib506|ib508)' },
  { classification: 'spam_block', fault: 'content', text: 'ib212' },

  // Mimecast: community.mimecast.com/docs/DOC-1369.
  {
    classification: 'policy_violation',
    fault: 'server',
    text: 'open relay not allowed\nnot an open relay\nenvelope blocked\nforwarding disabled',
  },
  { classification: 'policy_violation', fault: 'sender', text: '(anti spoofing|antispoofing|spoofed|spoofing)' },
  { classification: 'policy_violation', fault: 'content', text: 'email rejected due to security polic*' },
  {
    classification: 'temporarily_unavailable',
    fault: 'reputation',
    text: '(outbound thread limit|ip temporarily blacklisted|rate control)',
  },
  // Barracuda: a filter rule refused the message; campus.barracuda.com.
  { classification: 'spam_block', fault: 'content', text: 'permanent failure for one or more recipients .. blocked' },
  // Links in the message, not Postrider's address; Vade and Trend Micro name a spam pattern.
  {
    classification: 'spam_block',
    fault: 'content',
    text: '(url|urls|link|links|uri) in (this|your|the)\nspam pattern\n(spam|virus) or (virus|spam) (classification|content)\nspam or virus\ncontains spam',
  },
  // MDaemon, and others that limit the number of messages and not octets.
  { classification: 'mailbox_full', fault: 'recipient', text: 'too many messages (in|on) [the|his|your] (mailbox|inbox|server)' },
  // AOL, for an address that was reserved and never used.
  { classification: 'invalid_recipient', fault: 'recipient', text: 'never logged onto' },
  // Broadcom (Symantec, MessageLabs): knowledge.broadcom.com, "connection rejected by policy [7.x]".
  {
    classification: 'spam_block',
    fault: 'reputation',
    text: '(connection|connections) (rejected|refused|denied) by policy\nsymantec zodiac',
  },
  // Broadcom's 542 is not a code of any RFC: its customer has not registered the address.
  { classification: 'invalid_recipient', fault: 'recipient', codes: [542], text: 'rejected' },
  // Facebook: postmaster.facebook.com/response_codes.
  { classification: 'invalid_recipient', fault: 'recipient', text: 'rcp p1' },
  { classification: 'policy_violation', fault: 'recipient', text: 'rcp (p2|p3)' },
  // Zoho: zoho.com/mail/help/bounce; a rule of the domain refuses all its mail.
  { classification: 'policy_violation', fault: 'server', text: 'mail rejected by destination domain' },
  { classification: 'spam_block', fault: 'reputation', text: 'email outgoing blocked' },
  // Rackspace: docs.rackspace.com, codes in brackets.
  { classification: 'temporarily_unavailable', fault: 'reputation', text: '(g28|received too many messages from a new)' },
  // Mail.ru: help.mail.ru/mail-help/postmaster; its texts begin alike and end with the reason.
  { classification: 'no_mailbox', fault: 'recipient', text: 'local mailbox .. (disabled|terminated|blocked|frozen)' },
  { classification: 'mailbox_full', fault: 'recipient', text: 'local mailbox .. (over quota|full)' },
]
