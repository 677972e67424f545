/**
 * Rules about the sending side: temporary refusals, reputation, DNS, rate, TLS. Each family names servers that use its words.
 */
import type { ReplyRule } from './reply-rule.ts'

export const rulesOfSenders: readonly ReplyRule[] = [
  // Postgrey, milter-greylist, SQLgrey, rspamd; Gmail and Rackspace for a mailbox that receives too much; Postfix's address verification.
  {
    classification: 'temporarily_unavailable',
    fault: 'server',
    text: `
      (greylist*|graylist*|greytrap*|grey|postgrey)
      (gray|grey) (list*|rbl)
      (recipient|rcpt|user) .. (unverified|not verified)
      (unverified|unable to verify|could not verify|can not verify) [the] (recipient|user)
      address verification in progress
      (recipient|user|mailbox) [has] exceed* [the|message|its|their] (rate|message rate)
      receiving {sent} (too quickly|at a rate)
      (user|recipient|mailbox|account) .. (received|receiving|getting) .. (too many|too much|large number)
      too much email in a short
      recipient thread limit
      recipient deferred because
      (domain policy size|too many recipients per|per transaction) .. (transaction|session|connection)
      {mailbox} .. (temporar*|currently|momentarily) ~ (disabled|locked|unavailable|inactive|blocked|busy)
      {mailbox} ~ (disabled|locked|unavailable|blocked|busy) temporar*`,
  },

  // Gmail names the SPF or DKIM domain of such mail, Yahoo the complaints: neither concerns DNS.
  {
    classification: 'spam_block',
    fault: 'reputation',
    text: `
      (unsolicited|unusual rate of) {sent} originating
      (unexpected volume|complaint|complaints)
      (low|poor|bad|no|none|insufficient|negative|suspicious|questionable) [ip|sender|sending|domain|email|mta] (reputation|reputations)
      (ip|sender|sending|domain|url|mta|network|dnsbl) [address|domain] reputation
      reputation (of|problem*|score|service|filter|block|list|too|based|is|was|below)
      (smtp|email|mail) (reputation|reputations)
      sender score`,
  },

  // RFC 7208, 6376, 7489 in common words. "To protect our users from spam and phishing" follows some of these.
  {
    classification: 'policy_violation',
    fault: 'sender',
    text: `
      (spf|dmarc|dkim|domainkeys|dmarcrejection)
      sender policy framework
      sender id (check|failed|pra|permerror|verification)
      purported responsible
      (unauthenticated|not authenticated) (mail|email|sender|senders|message|messages)
      {sent} [is] unauthenticated
      sender is unauthenticated
      required authentication level
      (authentication|authenticity) (checks|check|results|information|requirements|guidelines)
      authenticate with
      {sent} .. (failed|fails) ~ (authentication|authenticity)
      ipv6 (sending guidelines|guidelines)
      not authorized to send [mail|email|messages] (from|for|on behalf of) [the|this|your] (domain|#)
      mismatches client ip
      invalid ip for`,
  },
  // Missing or generic PTR, HELO: Postfix's reject_unknown_*, GMX, T-Online, Cox, Comcast.
  {
    classification: 'policy_violation',
    fault: 'sender',
    text: `
      (rdns|fcrdns|reversedns|ptr)
      (reverse|inverse) [dns|address|ip|name|host|client] (dns|lookup*|record*|entry|name|hostname|mapping|resolution|pointer|entries)
      (can not|could not|unable to|failed to) (find|resolve|verify|determine|lookup|look up) [your|the|client|sender|sending] (hostname|helo|ip name|ip address|ip)
      ip name lookup
      dns record ~ (sending|your|client) (ip|host|server)
      (helo|ehlo) .. (rejected|invalid|bad|not resolve|not found|denied|failed|refused|error|fqdn|fully qualified|mismatch*|unresolvable|does not|required|check|not acceptable|forged|fake)
      (bad|invalid|fake|forged|incorrect|bogus|illegal|unqualified|generic) (helo|ehlo)
      forward confirmed
      (unresolvable|unknown|unverifiable|unverifyable) (relay host|client host|host name|hostname|sending ip*|sending ips)
      (generic|dynamic) (hostname|host name|dns)
      (hostname|host name) .. (not resolve|not resolvable|looks dynamic|looks generic)
      may not be mail exchanger
      (pas de|aucun) (reverse|dns inverse)
      reverse dns eintrag`,
  },
  // The envelope sender or the From field: no such domain, no MX, failed callout, malformed.
  {
    classification: 'policy_violation',
    fault: 'sender',
    text: `
      (sender|callout|callback) (verify|verification) .. (failed|failure|error)
      (could not|can not|unable to|failed to|not) (verify|validate|resolve) ~ {sender}
      {sender} .. (not found|not exist*|not resolve|unresolvable|no mx|no dns|no a or mx|not resolvable|no valid mx|has no mx|must resolve|must exist|unknown|null mx|not be resolved|not be verified|unverified|not verified|nonexist*|has no a|no a aaaa)
      {sender} .. (not a valid|not valid|invalid|resolve fail*|mismatch*|not in my)
      (unresolvable|unresolved) .. domain
      domain name required
      badmailfrom
      verification failed for
      from header must
      sender verify
      {sender} ~ (unroutable|unrouteable|undeliverable|malformed|bogus|empty|not in the|incorrect|syntax|must be|required)
      (domain of sender|sender domain|sending domain|from domain|mailfrom domain) .. {gone}
      (invalid|bad|illegal|unknown|nonexistent|unresolvable|fake|forged|bogus|unverified|unroutable|unrouteable|malformed|empty|missing|no|unverifiable|spoofed) [envelope|domain|email|return|in|valid] {sender}
      (address in from|addresses in from|from addresses|multiple from)
      (email|sender) address is not verified
      failed the check
      verifying #
      (domain|address) .. (not accept bounces|no mail exchanger)
      emetteur invalide
      absender* .. (ungultig|unbekannt|abgelehnt|existiert nicht)
      remitente .. (no existe|invalido|no valido)
      发 件 人 .. (不 存 在|无 效)`,
  },

  // The geographic location of Postrider's address: not its reputation.
  {
    classification: 'policy_violation',
    fault: 'reputation',
    text: `
      (geoip|geographic*|geolocation|geo ip|geo location|geoblock*)
      (your|this|that|certain|from|the) (country|countries|region)`,
  },

  // Lists and blocks, with any code: Spamhaus, SpamCop, Barracuda, Cloudmark, UCEPROTECT, private lists.
  {
    classification: 'spam_block',
    fault: 'reputation',
    text: `
      {list}
      (blocked|rejected|denied|refused) using
      blocklisting
      (blocked|rejected|denied|refused|listed) (by|on) ivmsip
      (is|are|was|were|currently|ip|#|host|been|domain|client|found) (listed|blacklisted|blocklisted) (by|at|in|on|via|with)
      (blacklisted|blocklisted) (by|at|in|on|via|with)
      {peer} .. (is|are|was|were|been|on) ~ {listed}
      (your|sending|client|source|sender|remote|this ip|the ip|# ip) [ip|mail|email|smtp|sending] (address|addresses|ip|ips|host|mta|server|network|netblock|remotehost|mailserver|range|subnet|domain|provider|isp) .. ({listed}|blacklist*|blocked|listed|banned)
      (ip|host|client|server|#) ~ ({listed}|blacklisted|blacklist*|blocked|listed|banned|blocklisted)
      (banned|blocked|bad|blacklisted|suspected|suspicious|spam|spamming|abusive|untrusted|zombied|prohibited|restricted|blocklisted|rejected|refused) [spam|sending|sender|source|client|smtp|mail] (ip|ips|ip address|ip addresses|host|server|network|ip profile)
      (ip|address|host|server|client|domain|#) .. (rejected|refused|denied|blocked) .. (listing|reputation|spamming|abuse)
      (sends|sent|sending|send|source of|originated|originating) [currently|mostly|too much|too many|only|large amounts of] (spam|spamming|junk|viruses|abuse)
      (spam|spamming|spammer|abusive|malicious|abuse) (source|host|activity|behavior|behaviour|sender|senders|server|origin|traffic|from|network|incident*|issues|like behav*|detected from|ip|ips)
      {sender} .. (blacklist*|blocklist*|blocked|banned|black listed|block listed|spammer|listed|in my black)
      (blocked|banned|blacklisted|suspected) (sender|senders|domain)
      suspected spam (sender|ip)
      too many [spam|unwanted|bad|abuse] (spams|spam|unwanted|abuse)
      {sent} .. (not accepted|refused|rejected|blocked|denied|not be accepted|not sent) .. from (#|ip|your|this|dynamic|host|network)
      (mail|message|messages|email|emails|connection|connections|traffic) from (#|ip|your ip|your server|your host|this ip|your network|host|server|client) .. (rejected|refused|blocked|denied|not accepted|not allowed|not sent|permanently deferred|prohibited)
      messages from .. not sent
      permanently deferred
      (to from an|from an|an) address that has been (blacklisted|blocked|blocklisted)
      (ip|client|host) address {refused}
      (reported|known|listed|blocked) for [sending] (abuse|spam|spamming)
      not .. accept* ~ (mail|messages|email|emails|connections|connection|traffic|smtp) from (#|your|this|dynamic|ip|hosts|that|dialup|residential)
      not in whitelist
      (access|connection|connections|service|smtp) .. (denied|refused|rejected|blocked|forbidden|not allowed|dropped|closed|terminated) .. (your ip|from ip|your host|your server|# #|sending mta|bad ip)
      you (have been|are) (blacklisted|blocklisted|banned|listed)
      (open relay|open proxy|openrelay|zombie|botnet|zombied)
      (dynamic|residential|dialup|dial up|transient) (ip*|address*|range|space|client|host*|pool)
      not accepting connections
      not allowed to connect
      host network not allowed
      spamtrap*
      (bad|poor) (ip|record|history)
      (access|submit messages) .. (mail system|email system|e mail system) has been rejected
      (adresse ip|ip source) .. bloque*
      (liste noire|lista negra|lista nera|schwarze* liste|czarn* list*|zwarte lijst|svarta listan|kara liste*)
      (черн* списк*|черн* список)
      (黑 名 单|黑 名 單|フラックリスト|ブラックリスト)`,
  },

  // A refused sender without a mention of a list.
  {
    classification: 'policy_violation',
    fault: 'sender',
    text: `
      {sender} [address|ip|ip address|email|email address] [has been|is|was|not] {refused}
      (batv|backscatter|prvs)
      (rejected|refused|denied|unacceptable) {sender}`,
  },

  // Rate and number limits, which end at a lower rate.
  {
    classification: 'temporarily_unavailable',
    fault: 'reputation',
    text: `
      (rate|frequency) (limit*|exceeded|exceeds|too|control|is too|of mail|of email|of message*|throttl*)
      (ratelimit*|ratelimited|throttl*)
      (exceed*|over|reached|hit) .. (rate|rates|messages per|connections|per hour|per minute|per day|per second|hourly|maximum number of messages|maximum number of connections|number of messages|message limit|connection limit)
      (too many|too much|excessive|high|maximum|max|unusual|unusually large|large|concurrent|simultaneous|parallel) [of|number of|amount of|smtp|concurrent|simultaneous|inbound|incoming|allowed|parallel|open|new|number of concurrent|number of simultaneous] (connections|connection|messages|mails|emails|mail from|email from|sessions|session|volume|rate|traffic|requests|deliveries|transactions|message per connection|errors|message rate|emails per|helos|threads)
      (connection|connections|session|sessions|message|messages|volume|thread) [rate|count|frequency] (limit|limits|frequency|threshold|limited) [reached|exceeded|for]
      (limits|limit) .. (how many|number of) (messages|emails|connections|mails)
      (daily|hourly) (relay|sending|message|mail) (quota|limit)
      (slow down|slower|too fast|too quickly|too frequent*|too often|back off|backoff)
      (deferred|delayed|refused) due to .. (volume|rate|load|limits)
      (all available ips|resources) .. (maximum|limit)
      (max|maximum) {sent} per (hour|day|minute|connection|session)
      sent to too many recipients
      (allotted|allowed|permitted) .. per (hour|day|minute|connection|session)
      too many (different|recipients) .. (hour|day|minute|period)
      trop de (connexions|messages|courriels|connections)
      zu viele (verbindungen|nachrichten|mails)
      demasiad* (conexiones|mensajes|correos)
      (troppe connessioni|troppi messaggi|muitas conexoes|muitas mensagens|te veel verbindingen)
      слишком (много|часто)
      (频 率|频 繁)
      (发 信|发 送) .. 超 过`,
  },
  // Sendmail's BadRcptThrottle, Cox, Exchange's edge: too many dead addresses, which is a matter of reputation.
  {
    classification: 'policy_violation',
    fault: 'reputation',
    text: `
      too many (invalid|unknown|bad|nonexistent|wrong|undeliverable|failed) (recipients|users|rcpt*|addresses|recipient|commands|user)`,
  },
  // Postfix, Exim, qmail: more recipients in one transaction than the server accepts.
  {
    classification: 'temporarily_unavailable',
    fault: 'server',
    replies: 'temporary',
    text: '(too many|maximum|max) [number of] (recipients|rcpts|rcpt)',
  },
  { classification: 'policy_violation', fault: 'ours', text: '(too many|maximum number of|max) (recipients|rcpts|rcpt)' },

  {
    classification: 'tls_required',
    fault: 'ours',
    text: `
      (issue|use|send|need|needs|require|requires|required|must do|without|must first issue|demands|expects|only|enforces) [a|an|to|use|the|of|issue|valid|start|forced|with|over|mandatory] (starttls|tls|ssl|encryption|encrypted|secure) [connection|session|transport]
      (enable|please use|negotiate) (starttls|tls|ssl)
      (plaintext|plain text|cleartext|unencrypted) (delivery|connection|connections|session|sessions|transport|mail)
      must [first] (use|issue|support|be|enable|negotiate) [a|an|over|sent over] (starttls|tls|ssl|encryption|encrypted|secure)
      (starttls|tls|ssl|encryption|encrypted connection|secure connection|encrypted session|session encryption) ~ (first|required|is required|mandatory|needed|enforced|necessary|not used|negotiation|handshake)
      (starttls|tls) ~ (not available|unavailable)
      only accept* .. (tls|encrypted|ssl)
      (insufficient|weak|weaker|outdated|old|unsupported|obsolete|stronger) (tls|encryption|cipher*|ssl)
      (mta sts|certificate)
      (tlsa|dane) .. (required|validation|authentication|failed|policy|record*)
      (chiffrement|verschlusselung|cifrado|encriptacion|szyfrowanie) .. (requis|obligatoire|erforderlich|notwendig|requerid*|wymagan*)`,
  },
]
