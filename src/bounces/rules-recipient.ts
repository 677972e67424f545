/**
 * Rules about the recipient and the route to it: relaying, loops, addresses that accept no mail, no longer exist, or never existed.
 */
import type { ReplyRule } from './reply-rule.ts'

export const rulesOfRecipients: readonly ReplyRule[] = [
  // Gateways of mobile carriers.
  { classification: 'invalid_recipient', fault: 'recipient', text: 'no valid recipients for this (mm|mms|sms)' },
  // Sent when no recipient was left: the earlier replies gave the reason.
  {
    classification: 'protocol_error',
    fault: 'ours',
    text: 'no valid recipients\nno recipients (specified|accepted|given|were)\nincorrectly constructed\nmalformed address\nvalid rcpt command must\n(parameters|parameter) not (recognized|implemented)',
  },

  // The MX does not know that it is one, or requires a password: Postfix, Exim, Sendmail, qmail's rcpthosts, Exchange.
  {
    classification: 'policy_violation',
    fault: 'server',
    text: `
      (relay|relaying) .. (denied|not permitted|not allowed|prohibited|disallowed|refused|disabled|rejected|access|is not|forbidden|for|without)
      (unable|not permitted|not allowed|not authorized|not authorised|not configured|refuse*|not|unwilling|will not|no|insecure) [to|mail|this] (relay|relaying)
      mail relay
      as a relay
      not an open relay
      rcpthosts
      local user only
      auth (failed|failure|error)
      not a gateway
      remote domains not supported
      gateway user
      (authentication|auth|login|authorization) .. (required|is required|needed|necessary|first|credentials)
      (requires|require|need|needs|please|must|turn on|using) [smtp|to|be] (authentication|authenticate|authenticated|auth|log in|login)
      (not|was not) [been] authenticated
      unauthenticated senders
      authentification (requise|invalide)
      (specified domain|domain) is not (allowed|hosted|local|handled|in my list)
      (use the smtp server of|smtp server of your isp)
      no (tpermission|relay)
      weiterleitung .. (verboten|nicht erlaubt)`,
  },

  // RFC 5321 section 6.3.
  {
    classification: 'protocol_error',
    fault: 'server',
    text: `
      (hop count|too many hops|maximum hop|hops exceeded)
      (mail|message|routing|forwarding|delivery|email|dns|redirection|endless|probable|possible) [mail|forwarding|routing] (loop|loops|looping)
      (loops|points) back to
      mailloop
      (loop|looping) (detected|found|was found|broken|message)
      too many received
      would create a mail loop`,
  },
  { classification: 'protocol_error', fault: 'server', subjects: ['4.6', '4.14'] },

  // A program behind the address failed: procmail, maildrop, a script of an alias. It is the server's fault, regardless of the program's
  // message.
  {
    classification: 'temporarily_unavailable',
    fault: 'server',
    text: `
      (command|program|script|pipe|mailer|filter|agent|child|process) .. (died|crashed|exited|terminated|exit status|exit code|return code|killed by|signal)
      (exit|exited with|died with) [with] (status|code)
      (pipe to|unknown mailer error|broken pipe|can not execute|could not execute|cannot execute|could not exec|unable to run|child returned)
      (procmail|maildrop|mailfilter|forward file) .. (failed|failure|error|could not|unable|can not|denied)
      (error|failed|failure) .. (writing to|opening|creating|executing|running|piping) .. (mailbox|file|command|program|script|pipe)
      lock failure
      ldap (server|error|lookup|directory|failure|timeout)`,
  },
  { classification: 'temporarily_unavailable', fault: 'server', replies: 'temporary', text: 'unverified address' },

  // Not from every sender, or not every message: a rule of the receiving side.
  {
    classification: 'policy_violation',
    fault: 'server',
    text: `
      not [currently|longer|any] (accept*|receive*|accepting) [any|incoming|inbound|email|new|external] (mail|email|emails|messages|message|deliveries|mails) [messages] (from|with|containing|that|over|by|sent|of|larger|without|which|to this|via|through|signed)
      account outbound*`,
  },
  // Closed, disabled, gone: Gmail, Yahoo, Apple, Mail.ru, Comcast and every small server.
  {
    classification: 'no_mailbox',
    fault: 'recipient',
    text: `
      (user|users|username|mailbox|mailboxes|account|recipient|address|addressee|inbox|email|alias|person|subscriber|member|employee|email account|customer) .. {off}
      disableduser
      is now (disabled|deactivated|inactive|suspended)
      (domain|host|user|this) .. is [now|currently|temporarily] (disabled|inactive|deactivated|suspended)
      (account|mailbox|recipient|addressee) .. (blocked|barred|on hold|unavailable user is|stopped)
      (disabled|inactive|deactivated|suspended|closed|deleted|expired|terminated|frozen|locked|blocked|dormant|archived|invalid inactive) (user|recipient|mailbox|account|address|email|alias|mail|customer)
      (disabled|inactive) (recipient|email) address
      (extended inactivity|due to inactivity)
      is no longer (valid|active|in use)
      no longer (works|with|here|employed|at this|in service)
      (recipient|user|mailbox|account) ~ (moved|is gone|has gone)
      (postfach|konto|benutzer|empfanger|adresse) .. (deaktiviert|gesperrt|geschlossen|geloscht|inaktiv|nicht mehr)
      (compte|boite|adresse|destinataire) .. (desactive*|suspendu*|bloque*|ferme*|supprime*|archive*|inactif|inactive|n est plus)
      (cuenta|buzon|usuario|direccion) .. (deshabilitad*|desactivad*|suspendid*|bloquead*|cerrad*|eliminad*|inactiv*|cancelad*)
      (account|casella|utente|indirizzo) .. (disabilitat*|disattivat*|sospes*|bloccat*|chius*|cancellat*|inattiv*)
      (conta|caixa|usuario) .. (desativad*|suspens*|bloquead*|encerrad*|excluid*|inativ*|desabilitad*)
      (konto|skrzynka) .. (zablokowan*|nieaktywn*|zawieszon*|usunieta|usuniete|zamkniet*)
      (ящик*|аккаунт|учетная запись|пользователь) .. (заблокирован*|отключен*|удален*|неактив*|закрыт*)
      (账 号|帐 号|用 户|邮 箱|账 户) .. (停 用|冻 结|禁 用|锁 定|注 销|关 闭)`,
  },
  // RFC 7505, RFC 7504, and existing mailboxes that accept no mail.
  {
    classification: 'not_accepting_mail',
    fault: 'recipient',
    text: `
      (nullmx|null mx)
      (host|domain|recipient|user|mailbox|account|address|it|#|users|recipients|server|system|machine) .. not [currently|longer|any] (accept*|receive*) [any|incoming|inbound|email|new|external] (mail|email|emails|messages|message|deliveries|mails) [messages|for|at]
      not accept* [any|incoming|inbound|new] (mail|email|emails|messages) for
      (not|never) (accepts|accept) [any] (mail|email|emails|messages)
      no mail (accepted|is accepted|service)
      (record|records) .. no smtp service
      mail (receiving|reception|delivery|service) [is|has been] (disabled|turned off|deactivated)
      (refuses|refuse|refusing) [all|any] (mail|email|messages)
      (accepts|receives) no (mail|email)
      (unmonitored|not monitored|send only|sendonly|no reply mailbox)
      (nimmt keine|akzeptiert keine) (mails|nachrichten|email|e mails)
      n accepte (pas|plus|aucun) (de|d) (messages|mail|courriel*)`,
    replies: 'permanent',
  },
  { classification: 'not_accepting_mail', fault: 'recipient', text: '(nullmx|null mx)' },
  // RFC 7504 section 4.
  { classification: 'not_accepting_mail', fault: 'recipient', codes: [521], subjects: ['3.2'], text: 'not accepting network' },

  // "Mailbox unavailable" is RFC 5321's own text: for 550 not found or no access, for 450 busy.
  {
    classification: 'temporarily_unavailable',
    fault: 'server',
    replies: 'temporary',
    text: '(mailbox|user|recipient|account) [is|currently|temporarily|was] (unavailable|not available|busy|in use|locked)',
  },
  {
    classification: 'invalid_recipient',
    fault: 'recipient',
    text: '(recipient|recipient address) .. domain not found\nhost unknown\nunknown host\nno such (host|domain at)\ncan not deliver mail for',
  },
  { classification: 'invalid_recipient', fault: 'recipient', subjects: ['1.2'] },
  { classification: 'invalid_recipient', fault: 'recipient', subjects: ['4.4'], text: '(unknown|no such|invalid) domain' },
  // A domain that does not exist; the earlier rules have handled the sender's domain.
  {
    classification: 'dns_error',
    fault: 'server',
    text: `
      host or domain name not found
      (host|hostname|name server|nameserver|mx|dns|mail server) ~ (not found|not be found|lookup failed|lookup failure|not resolved|failure|timeout|query failed|servfail)
      (domain name|domain) (not found|not resolved) [dns]
      (unable to|could not|can not|failed to) (resolve|find|lookup|look up|locate) ~ (host|domain|mx|route|server|mail server|dns|name)
      (dns|name server|nameserver|name service|mx|resolver) [lookup|query|server|resolution|record] (error|failure|failed|problem|timeout|timed out|not found|servfail|reply|is misconfigured|loop)
      (name or service not known|malformed or unexpected name server|host name lookup|nxdomain|no mx|no relevant answers|no a record)
      (no route to|unable to route|no route for) [the] (domain|recipient|destination|address|#)
      dns records .. not be found
      unrouteable mail domain
      dnssec*
      domain is not reachable`,
  },
  {
    classification: 'invalid_recipient',
    fault: 'recipient',
    text: `
      (unknown|no such|invalid|bad|nonexistent|non existent|not existent|non existing|illegal|unrecognized|unrecognised|unroutable|unrouteable|undeliverable|incorrect|wrong|undefined|inexistent|ambiguous|not valid|not a valid|not a known|no valid|improper|not an existing|nonexisting) [local|virtual|email|mail|destination|recipient|delivery|or|illegal|existing|inactive|target|rcpt|envelope|smtp|internal|valid|remote|or disabled|forward|final|final delivery] {someone}
      (no|not a|no such|not any) [local|valid|mail|email|such|active|known] (user|users|mailbox|account|recipient|person|address|alias|subscriber|member|mail account|one|body|customer) [account|mailbox|name] (here|by|with that|at this|of that|found|exist*|for|named|matching|like this|on this|in this|at|called|under|available for|with this|with the|in our)
      {someone} .. {gone}
      {someone} .. not [a|an|been] (found|exist*|known|valid)
      (user|recipient|mailbox|account) [is|was|currently] (unavailable|not available|unavaiable)
      (recipient|destination|remote|your recipient) [domain|host] .. (domain|host) ~ (unknown|not exist*|nonexist*|not found|invalid|no such)
      (unknown|invalid|no such|bad|nonexistent) (recipient|destination|local) (domain|host|system)
      no such id
      (nobody|no one) (here|by that|with that|of that|at this)
      (not our|not my|not one of our|not a) (customer|customers|user|users|client|recipient*)
      not (listed|found) in .. (directory|address book|list|database|ldap|control|domino)
      not in .. (directory|validrcptto|address book|recipient list|database|control file|user list)
      need fully qualified address
      not an active (address|user|account|mailbox|recipient)
      (exrecipnotfound|recipient notfound)
      recipient suspend*
      (badrcptto|validrcptto|badrecipientto|recipientnotfound|recipnotfound|invalidrecipient|userunknown|invalidmailbox|nosuchuser|unknownuser)
      (does|do|could|can|did|was) not (recognize|recognise|know|find|locate|match|identify) [any|a|this|that|the|your|such|an] [email|recipient|local|matching|valid] (user|recipient|mailbox|address|account|addressee|person|destination)
      (unable|failed) to (find|locate|identify|recognize|resolve) [the|a|this|any] [email|recipient] (user|recipient|mailbox|address|account|addressee)
      (user|recipient|mailbox|account|address) [could|can] not be (found|located|recognized|resolved|identified)
      (envelope recipient|recipient) has been denied
      (check|verify|correct|confirm) [the|your|that] (recipient|email address|address|spelling|to address)
      not have an account
      (missing home directory|home directory)
      (bounced address|undeliverable to|not deliverable)
      (that domain or user|not a mailbox|no mailbox|mailbox name not allowed|not an address)
      (user not local|recipient is not local|not local user)
      (benutzer|empfanger|adresse|postfach|nutzer|mailbox|konto|adressat|emailadresse|email adresse) .. (unbekannt|nicht bekannt|existiert nicht|nicht gefunden|ungultig|nicht vorhanden|nicht existent|gibt es nicht|nicht erreichbar|nicht zustellbar)
      (unbekannte*|ungultige*|falsche*) (benutzer|empfanger|adresse|nutzer|empfangeradresse|adressat)
      (existiert nicht|kein solcher|kein postfach|kein benutzer)
      (utilisateur|destinataire|adresse|compte|boite|usager|bal) .. (inconnu*|invalide*|n existe pas|inexistant*|introuvable|non trouve*|erronee)
      (usuario|destinatario|direccion|buzon|cuenta|casilla) .. (desconocid*|no existe|no encontrad*|invalid*|inexistente|no valid*|no se encuentra)
      (no existe|no encontrado)
      (utente|destinatario|indirizzo|casella|account) .. (sconosciut*|non esiste|inesistente|non trovat*|non valid*|non e valid*)
      nessun utente
      (usuario|destinatario|endereco|caixa|conta) .. (desconhecid*|nao existe|inexistente|nao encontrad*|invalid*|nao localizad*)
      (gebruiker|ontvanger|adres|mailbox|postbus) .. (onbekend*|bestaat niet|niet gevonden|ongeldig)
      onbekende (gebruiker|ontvanger)
      (uzytkownik|użytkownik|adresat|konto|skrzynka|adres|odbiorca) .. (nieznan*|nie istnieje|nie znaleziono|nieprawidlow*|nieprawidłow*)
      (nieznany|nie ma takiego|brak takiego|brak) (uzytkownik*|użytkownik*|adresat*|konta|odbiorc*)
      (пользовател*|адресат*|получател*|ящик*|адрес|учетная запись) .. (не наиден*|не существует|неизвестен|неизвестен|не зарегистрирован*|отсутствует|не известен)
      (нет такого|неизвестныи|несуществующии|нет) (пользовател*|адрес*|адресат*|получател*|ящик*)
      (uzivatel|prijemce|adresat|schranka|adresa) .. (neexistuje|neznam*|nenalezen*)
      (neexistuj*|neznamy)
      (felhasznalo|cimzett|postafiok) .. (nem letezik|ismeretlen|nem talalhato)
      (kullanici|alici|adres|posta kutusu) .. (bulunamadi|yok|gecersiz|bilinmiyor|mevcut degil)
      (anvandar*|mottagar*|adress*|bruker*|bruger*|modtager*|adresse*) .. (okand*|finns inte|ukendt|ukjent|findes ikke|finnes ikke|eksisterer ikke|existerar inte)
      (okand|ukendt|ukjent) (anvandare|mottagare|bruger|modtager|bruker|mottaker)
      (vastaanottaja|kayttaja|osoite) .. (tuntematon|ei loydy|ei ole olemassa)
      tuntematon (vastaanottaja|kayttaja)
      (用 户|收 件 人|邮 箱|帐 号|账 号|地 址|使 用 者|帳 號|信 箱|该 用 户|收 件 者|郵 箱) .. (不 存 在|未 找 到|无 效|找 不 到|未 开 通|不 正 确|未 开 启|無 效)
      (不 存 在|查 无 此|查 無 此|無 此|没 有 该|没 有 此)
      (ユーサ|ユーサー|宛 先|受 信 者|メールホックス|アトレス|メールアトレス) .. (存 在 し|不 明|見 つかり|無 効|ありません)
      宛 先 不 明
      (존 재 하 지|수 신 자 를 찾|없 는 사 용 자)`,
  },
  // A domain without a hint whose it is: it may be the sender's.
  {
    classification: 'dns_error',
    fault: 'server',
    text: `
      (domain|host) ~ (unknown|not exist*|nonexist*|not found|invalid|no such)
      (unknown|invalid|no such|bad|nonexistent) (domain|host|system)`,
  },
  // A refusal of the recipient without a reason concerns the address, unless the code indicates a policy (Postfix's access tables).
  {
    classification: 'policy_violation',
    fault: 'server',
    subjects: ['7.*'],
    replies: 'permanent',
    text: '(recipient|recipients|rcpt|address) [address|addresses] (rejected|refused|denied|not accepted)',
  },
  {
    classification: 'invalid_recipient',
    fault: 'recipient',
    replies: 'permanent',
    text: `
      mailbox [is] unavailable
      (recipient|user|rcpt|addressee|rcpt to) [is|was] (rejected|not accepted|not ok|refused|denied|not allowed here|unacceptable)
      (recipient|recipients|address) (can not|could not) be verified
      (recipient|address|user|rcpt) (verification|check|lookup|validation) (failed|failure|error)
      (address|addresses|destination|mailbox|addressee) [is|was] (rejected|refused|unknown|not accepted|not acceptable|denied)`,
  },
]
