/**
 * Rules about the message: a virus, its form, spam, its size; and about full mailboxes, because sizes and quotas share their words.
 */
import type { ReplyRule } from './reply-rule.ts'

export const rulesOfContent: readonly ReplyRule[] = [
  // About a command, not the message.
  { classification: 'protocol_error', fault: 'ours', codes: [500, 501], text: 'line [is] (too long|length)' },
  // The recipient's own list or rule: the recipient's choice, and no sign that the address is dead. Exchange's RESOLVER.RST, Google Groups.
  {
    classification: 'policy_violation',
    fault: 'recipient',
    text: `
      (rejected|refused|blocked|denied|declined|filtered|not wanted|blacklisted|block) by [the|this|a|your|our|one of the] (recipient|recipients|user|users|mailbox owner|account owner|addressee|owner)
      (recipient|recipients|addressee|mailbox owner|this user) [has|have] [explicitly|been] (refuse|refuses|refused to|blocked you|blocked your|reject|rejects|declined|not want*|chosen not|restricted who|blocked the sender|blocked sender)
      (due to|because of|by|to) (recipient|user) (preference*|rules|rule|settings|filter*|policy|inbox rule)
      (only accept*|accepts only|accepting only|only receive*) .. (mail|email|emails|messages) .. (from|sent by)
      user reject*
      (refuses|refused) to receive
      (not|non) (a member|member|subscribed|allowed to post|authorized to post|permitted to post|pre approved)
      non member*
      senders to accept mail from
      (members only|closed mailing list|moderated|nonmember*)
      not (authorized|authorised|allowed|permitted|able) to (send|post|mail|email) [mail|messages|email|emails|a message|message] (to|into)
      (sendernotauthenticated*|restrictedtorecipientspermission|restricted the sender|notauthorized|authrequired|not authenticated when sending)
      delivery restriction
      (sender confirmation|challenge response|requires confirmation)`,
  },

  // Gmail 5.7.0, Mimecast, Exchange, amavis, ClamAV milters.
  {
    classification: 'policy_violation',
    fault: 'content',
    text: `
      (virus|viruses|malware|trojan|worm|infected|phish*|ransomware|malicious|infection|eicar)
      (attachment|attachments|attached|file type|file types|file extension|executable|executables|macro|macros|zip) .. {refused}
      {refused} .. (attachment|attachments|attachment type|file type|file types|file extension|executable|file name|filename|mime type)
      (illegal|prohibited|forbidden|dangerous|unacceptable|banned|suspicious|unsafe|invalid|disallowed|bad|harmful|unauthorized) [or|virus] (attachment*|content|contents|file*|mime|url*|link*|extension|html|character*|image*)
      (attachment|attachments) type
      (content|contents) ~ (potential|examination|policy|restrict*|violat*)
      (potential|possible|for) security [issue|risk|reasons|threat]
      security (issue|policies|policy|threat|risk)
      (suspicious|potentially executable)
      not accepted for policy reasons
      (anschadliche*|schadsoftware|virus|virus gefunden)
      (вирус*|病 毒|ウイルス)`,
  },
  // RFC 5322 and 2045 applied strictly: Gmail, Yahoo, Exchange, Zoho, Courier.
  {
    classification: 'policy_violation',
    fault: 'content',
    text: `
      (rfc|rfc5322|rfc2822|rfc822) [#] [5322|2822] (compliant|compliance|conform*|violation|specification*|standard*|standards)
      (rfc5322|rfc2822|not rfc)
      rfc # .. (compliant|compliance|conform*)
      (header|headers|mime|message id|messageid) ~ (missing|duplicate*|invalid|malformed|error|not compliant|not accepted|bad|illegal|not valid|required|too large|too long|size exceeds|contains|improper*|not rfc)
      (missing|duplicate|multiple|invalid|malformed|illegal|improper|improperly formatted) [required|mime|message|a|valid|formatted] (header|headers|date|subject|message id|messageid|mime|boundary|line ending*|binary)
      (bare|lone|stray) (lf|cr|linefeed*|newline*|line feed*|carriage*)
      (line|lines) ~ (too long|length exceed*|longer than)
      # bit data
      mime complexity
      (character set|character sets|charset|charsets)
      without .. (field|fields|header|headers)
      (body|message) contains (nul|null|8bit|binary)`,
  },
  // Spam by content: SpamAssassin, Gmail, Cloudmark, Barracuda, MailMarshal, Yandex, QQ.
  {
    classification: 'spam_block',
    fault: 'content',
    text: `
      (spam*|rspamd|gtube|ube|uce|unsolicited|antispam|spamassassin|spammy|spamlike|junk|junkmail|spamming|spamfilter)
      (bulk|marketing|advertis*) (mail|email|message|messages|content)
      message content rejected
      content reject*
      (content|body|url|urls|uri|link|links) .. (blacklist*|listed|blocked|denied|rejected|prohibited|filter*|not allowed)
      {sent} [content|contents] [is|was|has been] (filtered|filter rejected)
      (rejecting|rejected|denied|reject) ~ (content|bulk)
      content filter
      (surbl|uribl)
      (indesirable*|unerwunscht*|no deseado|indesiderat*|нежелательн*|спам*|niechcian*|istenmeyen)
      (垃 圾 邮 件|垃 圾 郵 件|垃 圾|迷 惑 メール)`,
  },

  // A limit of the sender; then full mailboxes and disks; then messages that are too large. In this order, because they share their words.
  {
    classification: 'policy_violation',
    fault: 'ours',
    text: `
      (sending|sender|outgoing|outbound|daily user|sending account) (quota|limit|limits) [has been|is|was] [exceeded|reached]
      reached a limit for sending`,
  },
  // United Internet and others append it to the registered text of 552, which is about a mailbox.
  {
    classification: 'message_too_large',
    fault: 'content',
    text: 'message size exceeds (fixed|maximum|the maximum|limit|our)\nclass size limit',
  },
  {
    classification: 'mailbox_full',
    fault: 'recipient',
    text: `
      {mailbox} .. (full|overdrawn|overfull|overflow*|out of space|out of storage|no space|quota)
      mailbox .. exceed* .. size
      {mailbox} .. (exceed*|reached|above) .. (quota|storage|space|disk|capacity|mailbox size|mailbox limit|local limit|message count)
      (full|filled|overflowing|overfull) {mailbox}
      (it|mailbox|inbox) is full
      too much mail data
      (quota|quotas|overquota|quotaexceed*) [usage|limit|has been|is|was|size|would] [been|be] (full|exceed*|reached|overflow|violation|over)
      (over|out of|exceed*|above|beyond|insufficient) [its|their|the|his|her|allowed|my|mail|disk|user|allocated|maximum|message|available|recipient|mailbox|a] [disk|storage|mailbox|mail|account|allowed|email] (quota|quotas|overquota)
      (overquota|disk quota|disc quota|diskspace quota|storage quota|mailbox quota|exceeded storage|mapiexceptionshutoffquotaexceeded|quota limit|mail quota)
      exceed* ~ (storage|allocated|mailbox size|mailbox space)
      (mailbox|inbox|account) .. (size limit|storage limit|space limit|limit exceeded|limits exceeded|maximum size|exceeded the limit|size exceed*|maximum storage|over the limit|over limit)
      (not enough|insufficient|no|not sufficient|lack of|running out of) [storage|disk|mailbox|free|more|available] (space|storage|room) .. (mailbox|user|account|recipient|inbox|#)
      (recipient|user|account|mailbox|inbox) .. (not have enough|not enough|insufficient|out of|not sufficient|has no) [free|more|disk|storage|mailbox] (space|storage|room|quota)
      (too many messages|full of messages) (in|on|for)
      (blocks limit|inode limit) exceeded
      (postfach|mailbox|posteingang|briefkasten|speicherplatz|speicher) .. (voll|uberfullt|erschopft|uberschritten)
      (boite|messagerie|bal) .. (pleine|saturee|remplie|surcharge*)
      (quota|espace) [de] [disque] (depasse|atteint|insuffisant|plein|excedido|superato|superata|esaurito|ultrapassad*)
      (buzon|casilla|bandeja|cuenta|correo) .. (lleno|llena|excedid*|excede|sin espacio|completo)
      cuota .. (excedida|superada|agotada|llena|excedio)
      (casella|spazio) .. (piena|esaurit*|satura)
      (caixa|conta) .. (cheia|lotada|excedid*|excedeu)
      cota .. (excedida|ultrapassada)
      (postvak|postbus|mailbox|brievenbus) .. (vol|volgelopen)
      (skrzynka|skrzynki|konto|skrzynce) .. (pelna|pełna|przepełnion*|przepelnion*|przekroczon*|przekroczyła)
      (ящик*|квота|лимит) .. (переполнен*|полон|заполнен|превышен*)
      (переполнен*|превышена квота)
      schranka .. (plna|preplnen*)
      kutusu .. (dolu|dolmus*)
      kota* .. (doldu|asildi|asimi)
      (brevlada*|inkorg*|postboks*|postkasse*) .. (full|fuld|fullt)
      (邮 箱|信 箱|郵 箱|空 间|容 量|收 件 箱|空 間) .. (已 满|已 滿|不 足|超 限|满|超 出)
      (空 间 不 足|容 量 不 足|邮 箱 已 满|信 箱 已 滿|收 件 箱 已 满|容 量 を 超|い っ は い|용 량 초 과)`,
  },
  {
    classification: 'temporarily_unavailable',
    fault: 'server',
    text: `
      (insufficient|not enough|out of|no|low on|not sufficient|exhausted|lack of) [system|disk|free|server|sufficient|queue|available] (storage|disk space|space|diskspace|memory|resources|resource|inodes|swap|diskspace)
      (system|server|disk|queue|filesystem|file system) [storage|is|disk] (full|resources|overload*)
      (insufficient|out of|not enough) (system|server|disk)
      no space left`,
  },
  {
    classification: 'message_too_large',
    fault: 'content',
    text: `
      (message|messages|mail|email|msg|attachment|attachments|data|file|content) .. (too large|too big|oversize*|too much data|larger than|bigger than|too heavy|over the maximum)
      (message|mail|email|msg|maximum|max|attachment|data|file|inbound|total) [message|mail|data|email] (size|length|sizes|sizelimit) .. (exceed*|limit*|violat*|too|maximum|larger|over|restrict*|reached|allowed|not allowed)
      (message|mail|email|msg|data|attachment) .. exceed* ~ (size|length|maximum|administrative|fixed|mb|mbytes|bytes|kb|megabytes)
      (exceed*|over|above|beyond) .. (message size|size limit|maximum size|max size|length limit|size limits|sizelimit|mailsize|maximum message|maximum inbound|allowed size|maximum length)
      (size limit|size limits|sizelimit|mailsize limit|message length|line limit) [is|was] (exceed*|reached)
      (oversized|too large|too big) (message|mail|email|attachment)
      (message|mail|data) ~ too long
      recipsizelimit
      (message|attachment) ~ (#|size) (mb|bytes) limit
      (nachricht|mail|anhang) .. zu (gross|groß)
      (message|taille) .. (trop volumineu*|trop grand*|trop gros*|limite|maximale)
      (mensaje|tamano|correo) .. (demasiado grande|excede|maximo)
      (messaggio|dimension*) .. (troppo grande|supera*|eccede|massima)
      (mensagem|tamanho) .. (muito grande|excede*|maximo)
      (bericht|wiadomosc|wiadomość) .. (te groot|za duza|za duża)
      (сообщение|письмо|размер) .. (слишком|превышает)
      (邮 件|信 件|郵 件) .. (过 大|太 大|過 大|超 过|大 小 超)
      サイス`,
  },
]
