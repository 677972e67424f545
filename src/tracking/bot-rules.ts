/**
 * Known programs that load pixels and follow links, as data: the first rule whose pattern occurs in the user agent decides. Each names its
 * source. `unknown` is for proxies that load a picture when a person looks, and sometimes without one. Networks are at the end.
 */
export type AgentKind = 'human' | 'machine' | 'unknown'

export interface AgentRule {
  reason: string
  source: AgentKind
  pattern: RegExp
  learntFrom: string
}

export const agentRules: readonly AgentRule[] = [
  {
    reason: 'no-user-agent',
    source: 'machine',
    pattern: /^\s*$/,
    learntFrom: 'https://check.live-direct-marketing.online/blog/bot-clicks-security-scanners-detect',
  },
  {
    // Loads every picture when the mail arrives, whether or not a person looks. iCloud Private Relay is different: a person browses through
    // it.
    reason: 'apple-mail-privacy-protection',
    source: 'machine',
    pattern: /^Mozilla\/5\.0$/,
    learntFrom: 'https://help.socketlabs.com/docs/identifying-apple-mpp-opens-in-notification-api-events',
  },
  {
    // Not the image proxy: Gmail itself, soon after delivery.
    reason: 'gmail-prefetch',
    source: 'machine',
    pattern: /Chrome\/42\.0\.2311\.135 Safari\/537\.36 Edge\/12\.246 Mozilla\/5\.0$/,
    learntFrom: 'https://www.gmass.co/blog/false-opens-in-gmail/',
  },
  {
    reason: 'gmail-image-proxy',
    source: 'unknown',
    pattern: /via ggpht\.com GoogleImageProxy/,
    learntFrom:
      'https://www.suped.com/knowledge/email-deliverability/technical/what-methods-do-esps-and-smtp-providers-use-to-identify-apple-mpp-and-googleproxyimages',
  },
  {
    reason: 'yahoo-image-proxy',
    source: 'unknown',
    pattern: /YahooMailProxy/,
    learntFrom: 'https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html',
  },
  { reason: 'image-proxy', source: 'unknown', pattern: /image ?proxy|mail ?proxy/i, learntFrom: 'by their names' },
  {
    reason: 'security-scanner',
    source: 'machine',
    pattern:
      /barracuda|bitdefender|cisco ?secure|forti(?:mail|guard)|google-safety|ironport|kaspersky|messagelabs|mimecast|proofpoint|safe ?links|sophos|symantec|trend ?micro|virustotal|zscaler/i,
    learntFrom: 'https://check.live-direct-marketing.online/blog/bot-clicks-security-scanners-detect',
  },
  {
    // Office tests a link before it opens it.
    reason: 'link-preview',
    source: 'machine',
    pattern: /Office Existence Discovery/i,
    learntFrom:
      'https://learn.microsoft.com/archive/blogs/vsofficedeveloper/description-of-the-microsoft-office-existence-discovery-protocol-2',
  },
  {
    reason: 'link-preview',
    source: 'machine',
    pattern:
      /bingpreview|discordbot|embedly|facebookexternalhit|google-pagerenderer|linkedinbot|microsoftpreview|skypeuripreview|slackbot|slack-imgproxy|telegrambot|twitterbot|whatsapp/i,
    learntFrom: 'https://github.com/monperrus/crawler-user-agents',
  },
  {
    reason: 'headless-browser',
    source: 'machine',
    pattern: /headlesschrome|phantomjs|playwright|puppeteer|selenium/i,
    learntFrom: 'https://github.com/omrilotan/isbot',
  },
  {
    // CUBOT makes telephones.
    reason: 'crawler',
    source: 'machine',
    pattern: /(?<!cu)bot\b|crawl|spider|slurp|archiver|scanner|url ?check|link ?check|monitoring/i,
    learntFrom: 'https://github.com/omrilotan/isbot',
  },
  {
    reason: 'program',
    source: 'machine',
    pattern:
      /^(?:apache-httpclient|axios|curl|go-http-client|guzzlehttp|java|libwww-perl|lua-resty-http|node|node-fetch|php|python|ruby|undici|wget)\b/i,
    learntFrom: 'https://github.com/omrilotan/isbot',
  },
]

/** User agents of browsers and mail programs; any other without a rule stays `unknown`. */
export const readerAgent = /^(?:Mozilla\/[45]\.0 \(|Opera\/)|Outlook|Thunderbird|^Microsoft Office\/|^(?:Mail|MobileMail|Airmail|Spark)\b/i

/**
 * Networks of the data centres from which mail gateways follow links: a click from there within seconds of the delivery was not a
 * person's. Only the large blocks; a program in a smaller one is not recognised. From the providers' own lists as merged by
 * https://github.com/lord-alfred/ipranges on 22 August 2026: amazon and microsoft of /13 and larger, google of /14 and larger.
 */
export const dataCentres: readonly string[] = `
  3.8.0.0/13 3.16.0.0/12 3.64.0.0/11 3.104.0.0/13 3.120.0.0/13 3.128.0.0/12 3.144.0.0/13 3.160.0.0/13 3.208.0.0/12 3.224.0.0/12
  3.248.0.0/13 13.48.0.0/12 13.184.0.0/13 13.192.0.0/11 13.224.0.0/12 16.24.0.0/13 16.48.0.0/13 16.144.0.0/12 16.192.0.0/13
  18.160.0.0/13 18.176.0.0/13 18.192.0.0/11 18.224.0.0/12 32.184.0.0/13 32.192.0.0/12 34.192.0.0/10 35.72.0.0/13 35.80.0.0/12
  35.152.0.0/13 35.160.0.0/12 35.176.0.0/13 43.200.0.0/13 43.208.0.0/13 44.192.0.0/10 51.200.0.0/13 52.0.0.0/11 52.32.0.0/13
  52.48.0.0/12 52.64.0.0/12 52.192.0.0/12 52.208.0.0/13 54.64.0.0/11 54.144.0.0/12 54.160.0.0/11 54.192.0.0/12 54.208.0.0/13
  54.224.0.0/13 54.248.0.0/13 56.48.0.0/13 56.240.0.0/13 63.176.0.0/12 88.104.0.0/13 89.48.0.0/13 98.80.0.0/12 99.200.0.0/13
  100.24.0.0/13 100.48.0.0/12 108.128.0.0/13 184.32.0.0/12 184.192.0.0/11
  4.128.0.0/9 13.64.0.0/11 13.96.0.0/13 20.0.0.0/11 20.40.0.0/13 20.48.0.0/12 20.64.0.0/10 20.160.0.0/11 20.192.0.0/10 23.96.0.0/13
  31.80.0.0/13 40.64.0.0/10 48.160.0.0/11 48.192.0.0/10 52.96.0.0/12 52.136.0.0/13 52.152.0.0/13 52.160.0.0/11 52.224.0.0/11
  57.152.0.0/13 57.160.0.0/12 68.240.0.0/13 74.144.0.0/12 98.64.0.0/14 104.40.0.0/13 104.208.0.0/13 107.32.0.0/11 135.224.0.0/12
  145.176.0.0/12 172.128.0.0/10 172.192.0.0/12 172.208.0.0/13 191.232.0.0/13 2a01:110::/31 2603:1000::/24
  8.228.0.0/14 8.232.0.0/14 34.4.0.0/14 34.8.0.0/13 34.16.0.0/12 34.32.0.0/11 34.64.0.0/10 34.128.0.0/10 35.184.0.0/13 35.192.0.0/14
  35.200.0.0/13 35.208.0.0/12 35.224.0.0/12 35.240.0.0/13 35.252.0.0/14 104.196.0.0/14 136.64.0.0/11 136.108.0.0/14 136.112.0.0/13
  2001:4860::/32 2404:6800::/32 2600:1900::/28 2607:f8b0::/32 2a00:1450::/32`
  .trim()
  .split(/\s+/)
