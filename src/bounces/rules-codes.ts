/**
 * The last rules, for replies with little text: ambiguous words, then the enhanced code, then the reply code.
 */
import type { ReplyRule } from './reply-rule.ts'

/** Temporary trouble of the receiving server, in the words of all servers. */
const trouble = `
      (try|please try|retry|resend|come back) .. (again|later)
      (temporar*|transient|maintenance|overload*|overloaded|busy|shutting down|closing transmission|closing connection)
      (service|server|system|esmtp|host) [is|currently|temporarily] (unavailable|not available|busy|down|not operational|not accepting)
      not accepting (network|messages|mail|email)
      (insufficient system|system load|load average|internal|local|configuration|software|database|lookup|queue|backend|upstream|resource*|io|write|disk) (error|problem|failure|trouble|failed|config error)
      (system config|server configuration|queue file|local error|local problem|internal error|internal server)
      (could not load|not ready|unable to process|unable to accept|not processed|processing error|timeout exceeded|delivery expired|message expired|this message has been in the queue)
      (veuillez|bitte|por favor|intente|riprova*) .. (plus tard|spater|mas tarde|tarde|piu tardi)
      稍 后`

export const rulesOfCodes: readonly ReplyRule[] = [
  // Exim gave up; any text before it gives the reason.
  { classification: 'temporarily_unavailable', fault: 'server', text: 'retry (timeout|time)' },
  {
    classification: 'temporarily_unavailable',
    fault: 'server',
    replies: 'temporary',
    text: `
      temporar* .. (failure|problem|error|failed)
      lookup failure`,
  },
  // Enhanced codes with one meaning (RFC 3463, RFC 7372, RFC 7505, RFC 8689; Microsoft's 5.7.5xx to 5.7.7xx).
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
  { classification: 'spam_block', fault: 'reputation', subjects: ['7.28', '7.501', '7.502', '7.503', '7.511', '7.606', '7.708'] },
  { classification: 'dns_error', fault: 'server', subjects: ['4.3', '4.4', '4.312'] },
  { classification: 'connection_error', fault: 'server', subjects: ['4.1', '4.2', '4.316'] },

  {
    classification: 'connection_error',
    fault: 'server',
    text: `
      (connection|connections|conversation|network|socket|connect) .. (timed out|timeout|time out|refused|reset|lost|dropped|closed unexpectedly|unreachable|broken|failed|aborted|interrupted)
      (timeout|timed out|idle timeout|no route to host|host unreachable|network unreachable|no answer from host|bad connection)
      (unable to|could not|can not|failed to) (connect|contact|reach)
      lost connection`,
  },
  { classification: 'temporarily_unavailable', fault: 'server', text: trouble, replies: 'temporary' },
  {
    classification: 'policy_violation',
    fault: 'server',
    text: `
      (policy|policies|administrative|administratively|administrator|compliance) ~ (reason*|restriction*|violation*|violate*|prohibit*|reject*|rule*|refus*|block*|den*|settings|failure|of|on|by|error)
      (against|violat*|by|due to|with|per|local|security|email|organization*|company|site|admin*) [our|the|local|a|your|security|site|email|this|organization*] (policy|policies)
      (policy|polices)
      (administrative prohibition|organization rule*|organizational settings|mail flow rule|transport rule*|rule imposed)
      (access|permission|delivery|message|mail|email|transaction|connection|sender|client host|client|host) [was|is|has been|address] (denied|rejected|refused|blocked|not authorized|not authorised|not allowed|not permitted|prohibited|forbidden)
      (not authorized|not authorised|not permitted|not allowed|unauthorized|forbidden)
      (blocked|access denied|rejected by)
      (abgelehnt|verweigert|refuse|rechazad*|rifiutat*|recusad*|rejeitad*|geweigerd|odrzucon*|отклонен*|отказано)`,
  },
  { classification: 'temporarily_unavailable', fault: 'server', text: trouble },
  {
    classification: 'protocol_error',
    fault: 'ours',
    text: `
      (syntax error|bad sequence|improper sequence|protocol violation|protocol error|out of sequence|command out of|bad command|invalid command|unknown command|synchronization error|improper command|improper use of smtp)
      (command|commands|parameter|argument|arguments|option) ~ (not recognized|unrecognized|unrecognised|not implemented|unknown|invalid|not supported|unexpected|rejected|not allowed|too long|disabled)
      (unrecognized|unrecognised|unsupported|unexpected|unimplemented|bad|invalid) (command|parameter|argument|option|sequence|syntax)
      (not implemented|need rcpt|need mail|need full|need data|rcpt first|mail first|send helo|say helo|polite people|before greeting|bad syntax|smtputf8|8bitmime)`,
  },

  // Enhanced codes with little meaning.
  { classification: 'temporarily_unavailable', fault: 'server', replies: 'temporary', subjects: ['7.0', '7.1'] },
  { classification: 'policy_violation', fault: 'server', subjects: ['7.*'] },
  { classification: 'policy_violation', fault: 'content', subjects: ['6.0', '6.1', '6.2', '6.3', '6.5', '6.6'] },
  { classification: 'protocol_error', fault: 'ours', subjects: ['5.0', '5.1', '5.2', '5.4', '5.5', '5.6', '6.*'] },
  { classification: 'temporarily_unavailable', fault: 'server', subjects: ['3.0', '3.1', '3.2', '3.3', '3.5', '4.*', '5.3', '2.4'] },

  // Reply codes (RFC 5321 section 4.2.3, RFC 7504, RFC 4954); 550, 553 and 554 are used for everything and so have no rule.
  { classification: 'policy_violation', fault: 'ours', codes: [530, 534, 535] },
  { classification: 'tls_required', fault: 'ours', codes: [523, 538] },
  { classification: 'mailbox_full', fault: 'recipient', codes: [422, 552] },
  { classification: 'not_accepting_mail', fault: 'recipient', codes: [521, 556] },
  { classification: 'no_mailbox', fault: 'recipient', codes: [525] },
  { classification: 'invalid_recipient', fault: 'recipient', codes: [510, 511, 513, 551] },
  { classification: 'policy_violation', fault: 'server', codes: [541, 571] },
  { classification: 'protocol_error', fault: 'ours', codes: [500, 501, 502, 503, 504, 555] },
  { classification: 'temporarily_unavailable', fault: 'server', replies: 'temporary' },
]
