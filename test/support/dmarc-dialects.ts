/**
 * Generated DMARC reports in the dialects of well-known reporters, after their public documentation and RFC 7489 appendix C: order and
 * absence of elements, namespaces, packing, several signatures, and how the mail carries the report.
 */
import { crc32, deflateRawSync, gzipSync } from 'node:zlib'

export interface GeneratedRecord {
  source: string
  count: number
  disposition: 'none' | 'quarantine' | 'reject'
  dkim: 'pass' | 'fail'
  spf: 'pass' | 'fail'
  headerFrom: string
  signatures: { domain: string; selector: string; result: string }[]
  spfDomain: string
}

export interface GeneratedReport {
  dialect: string
  domain: string
  id: string
  beginSeconds: number
  endSeconds: number
  records: GeneratedRecord[]
}

type Packing = 'zip' | 'gzip' | 'plain'

interface Dialect {
  organisation: string
  /** The domain of From. */
  sender: string
  packing: Packing
  contentType: string
  /** The start of the document, with the root's tag. */
  root: string
  prefix?: string
  policy: (domain: string) => string
  record: (one: GeneratedRecord) => string
  metadata: (report: GeneratedReport) => string
}

const declaration = '<?xml version="1.0" encoding="UTF-8" ?>\n'

const usualMetadata =
  (organisation: string, email: string, extra = '') =>
  ({ id, beginSeconds, endSeconds }: GeneratedReport) =>
    `<report_metadata><org_name>${organisation}</org_name><email>${email}</email>${extra}<report_id>${id}</report_id>` +
    `<date_range><begin>${beginSeconds}</begin><end>${endSeconds}</end></date_range></report_metadata>`

const policyOf =
  (tags: string) =>
  (domain: string): string =>
    `<policy_published><domain>${domain}</domain>${tags}</policy_published>`

const evaluated = ({ disposition, dkim, spf }: GeneratedRecord, reason = '') =>
  `<policy_evaluated><disposition>${disposition}</disposition><dkim>${dkim}</dkim><spf>${spf}</spf>${reason}</policy_evaluated>`

const dkimResults = ({ signatures }: GeneratedRecord, withSelector = true) =>
  signatures
    .map(
      ({ domain, selector, result }) =>
        `<dkim><domain>${domain}</domain>${withSelector ? `<selector>${selector}</selector>` : ''}<result>${result}</result></dkim>`,
    )
    .join('\n')

const spfResult = (one: GeneratedRecord, scope = '') =>
  `<spf><domain>${one.spfDomain}</domain>${scope}<result>${one.spf === 'pass' ? 'pass' : 'softfail'}</result></spf>`

const usualRecord = (one: GeneratedRecord) =>
  `<record><row><source_ip>${one.source}</source_ip><count>${one.count}</count>${evaluated(one)}</row>` +
  `<identifiers><header_from>${one.headerFrom}</header_from></identifiers>` +
  `<auth_results>${dkimResults(one)}${spfResult(one)}</auth_results></record>\n`

const usualPolicy = policyOf('<adkim>r</adkim><aspf>r</aspf><p>none</p><sp>none</sp><pct>100</pct>')

export const dialects: Record<string, Dialect> = {
  google: {
    organisation: 'google.com',
    sender: 'google.com',
    packing: 'zip',
    contentType: 'application/zip',
    root: `${declaration}<feedback>\n<version>1.0</version>`,
    metadata: usualMetadata(
      'google.com',
      'noreply-dmarc-support@google.com',
      '<extra_contact_info>https://support.google.com/a/answer/2466580</extra_contact_info>',
    ),
    policy: policyOf('<adkim>r</adkim><aspf>r</aspf><p>none</p><sp>none</sp><pct>100</pct><np>none</np>'),
    record: usualRecord,
  },
  microsoft: {
    organisation: 'Outlook.com',
    sender: 'microsoft.com',
    packing: 'gzip',
    contentType: 'application/gzip',
    root: '<?xml version="1.0"?>\n<feedback xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><version>1.0</version>',
    metadata: usualMetadata('Outlook.com', 'dmarcreport@microsoft.com'),
    policy: policyOf('<adkim>r</adkim><aspf>r</aspf><p>quarantine</p><sp>quarantine</sp><pct>100</pct><fo>0</fo>'),
    record: (one) =>
      `<record><row><source_ip>${one.source}</source_ip><count>${one.count}</count>${evaluated(one)}</row>` +
      `<identifiers><envelope_to>outlook.com</envelope_to><envelope_from>${one.spfDomain}</envelope_from><header_from>${one.headerFrom}</header_from></identifiers>` +
      `<auth_results>${dkimResults(one)}${spfResult(one, '<scope>mfrom</scope>')}</auth_results></record>`,
  },
  yahoo: {
    organisation: 'Yahoo',
    sender: 'dmarc.yahoo.com',
    packing: 'gzip',
    contentType: 'application/gzip',
    root: '<?xml version="1.0"?>\t\n<feedback>\t\n',
    metadata: usualMetadata('Yahoo', 'dmarchelp@yahooinc.com'),
    policy: policyOf('<adkim>r</adkim><aspf>r</aspf><p>none</p><pct>100</pct>'),
    record: (one) =>
      `  <record>\n    <row>\n      <source_ip>${one.source}</source_ip>\n      <count>${one.count}</count>\n      ${evaluated(one)}\n    </row>\n` +
      `    <identifiers>\n      <header_from>${one.headerFrom}</header_from>\n    </identifiers>\n    <auth_results>\n      ${dkimResults(one)}\n      ${spfResult(one)}\n    </auth_results>\n  </record>\n`,
  },
  fastmail: {
    organisation: 'FastMail Pty Ltd',
    sender: 'fastmaildmarc.com',
    packing: 'gzip',
    contentType: 'application/x-gzip',
    root: `<?xml version='1.0' encoding='UTF-8'?>\n<!-- made by an open-source library -->\n<feedback xmlns="http://dmarc.org/dmarc-xml/0.1"><version>1.0</version>`,
    metadata: usualMetadata('FastMail Pty Ltd', 'reports@fastmaildmarc.com', '<error>none &amp; nothing</error>'),
    policy: usualPolicy,
    record: (one) =>
      usualRecord(one).replace(
        '</policy_evaluated>',
        '<reason><type>forwarded</type><comment>arc=pass &lt;trusted&gt; &#228;</comment></reason></policy_evaluated>',
      ),
  },
  'mail.ru': {
    organisation: 'Mail.Ru',
    sender: 'corp.mail.ru',
    packing: 'gzip',
    contentType: 'application/gzip',
    root: '<?xml version="1.0" ?><feedback>',
    metadata: usualMetadata(
      'Mail.Ru',
      'dmarc_support@corp.mail.ru',
      '<extra_contact_info>http://help.mail.ru/mail-help</extra_contact_info>',
    ),
    policy: usualPolicy,
    record: (one) => usualRecord(one).replace('<record>', '<record ><!-- row -->'),
  },
  comcast: {
    organisation: 'comcast.net',
    sender: 'comcast.net',
    packing: 'plain',
    contentType: 'text/xml',
    root: `${declaration}<feedback>`,
    metadata: usualMetadata('comcast.net', 'dmarc@comcast.net'),
    policy: policyOf('<p>none</p>'),
    record: (one) => usualRecord(one).replace(/<selector>.*?<\/selector>/g, ''),
  },
  gmx: {
    organisation: 'GMX',
    sender: 'gmx.net',
    packing: 'gzip',
    contentType: 'application/gzip',
    root: `${declaration}<feedback><generator>mail module 4.2</generator>`,
    metadata: usualMetadata('GMX', 'noreply-dmarc@sicher.gmx.net'),
    policy: usualPolicy,
    record: (one) => usualRecord(one).replace('<source_ip>', '<source_ip>\n').replace('</source_ip>', '\n</source_ip>'),
  },
  amazonses: {
    organisation: 'AMAZON-SES',
    sender: 'amazonses.com',
    packing: 'gzip',
    contentType: 'application/octet-stream',
    root: `${declaration}<feedback><version>1.0</version>`,
    metadata: usualMetadata('AMAZON-SES', 'postmaster@amazonses.com'),
    policy: usualPolicy,
    record: (one) => usualRecord(one).replace('<identifiers>', '<identifiers><envelope_from/>'),
  },
  mimecast: {
    organisation: 'Mimecast.org',
    sender: 'mimecastreport.com',
    packing: 'zip',
    contentType: 'application/x-zip-compressed',
    root: `${declaration}<feedback xmlns:a="b > c"><version>1.0</version>`,
    metadata: usualMetadata('Mimecast.org', 'no-reply@mimecastreport.com'),
    policy: usualPolicy,
    record: (one) => usualRecord(one).replace(one.headerFrom, `<![CDATA[${one.headerFrom}]]>`),
  },
  proofpoint: {
    organisation: 'example-customer.test',
    sender: 'emaildefense.proofpoint.com',
    packing: 'gzip',
    contentType: 'application/gzip',
    root: `\ufeff${declaration}<feedback>`,
    metadata: usualMetadata('example-customer.test', 'reports@emaildefense.proofpoint.com'),
    policy: usualPolicy,
    // Without its own evaluation of alignment: the results decide.
    record: (one) =>
      usualRecord(one).replace(
        /<policy_evaluated>.*<\/policy_evaluated>/,
        `<policy_evaluated><disposition>${one.disposition}</disposition></policy_evaluated>`,
      ),
  },
  zoho: {
    organisation: 'zoho.com',
    sender: 'zohomail.com',
    packing: 'plain',
    contentType: 'application/xml',
    root: '<feedback>',
    metadata: usualMetadata('zoho.com', 'noreply-dmarc@zohomail.com'),
    policy: usualPolicy,
    record: (one) => usualRecord(one).replace(one.headerFrom, one.headerFrom.toUpperCase()),
  },
  rfc9990: {
    organisation: 'reporter.test',
    sender: 'reporter.test',
    packing: 'gzip',
    contentType: 'application/gzip',
    root: `${declaration}<d:feedback xmlns:d="urn:ietf:params:xml:ns:dmarc-2.0"><d:version>1.0</d:version>`,
    prefix: 'd:',
    metadata: usualMetadata('reporter.test', 'dmarc@reporter.test', '<generator>Reporter 1.0</generator>'),
    policy: policyOf('<discovery_method>treewalk</discovery_method><p>none</p><sp>none</sp><np>none</np><testing>n</testing>'),
    record: usualRecord,
  },
}

/** `xml`, with the dialect's namespace prefix. */
export function xmlOf(report: GeneratedReport): string {
  const dialect = dialects[report.dialect] as Dialect
  const inner = dialect.metadata(report) + dialect.policy(report.domain) + report.records.map(dialect.record).join('')
  const prefixed = dialect.prefix ? inner.replace(/<(\/?)(?=[a-z])/g, `<$1${dialect.prefix}`) : inner
  return `${dialect.root}${prefixed}</${dialect.prefix ?? ''}feedback>\n`
}

export function zipOf(name: string, content: Buffer, bounds: { method?: 0 | 8; flags?: number } = {}): Buffer {
  const { method = 8, flags = 0 } = bounds
  const packed = method === 8 ? deflateRawSync(content) : content
  const common = Buffer.alloc(26)
  common.writeUInt16LE(20, 0)
  common.writeUInt16LE(flags, 2)
  common.writeUInt16LE(method, 4)
  common.writeUInt32LE(crc32(content), 10)
  common.writeUInt32LE(packed.length, 14)
  common.writeUInt32LE(content.length, 18)
  common.writeUInt16LE(name.length, 22)
  const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, Buffer.from(name)])
  const central = Buffer.concat([Buffer.from('PK\x01\x02\x14\x00', 'latin1'), common, Buffer.alloc(14), Buffer.from(name)])
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(1, 8)
  end.writeUInt16LE(1, 10)
  end.writeUInt32LE(central.length, 12)
  end.writeUInt32LE(local.length + packed.length, 16)
  return Buffer.concat([local, packed, central, end])
}

const pack = (packing: Packing, name: string, content: Buffer) =>
  packing === 'zip' ? zipOf(name, content) : packing === 'gzip' ? gzipSync(content) : content

/** The mail that carries the report. */
export function mailOf(report: GeneratedReport, to: string): Buffer {
  const dialect = dialects[report.dialect] as Dialect
  const name = `${dialect.sender}!${report.domain}!${report.beginSeconds}!${report.endSeconds}.xml`
  const file = dialect.packing === 'zip' ? name.replace('.xml', '.zip') : dialect.packing === 'gzip' ? `${name}.gz` : name
  const content = pack(dialect.packing, name, Buffer.from(xmlOf(report)))
  return attachedMail({
    from: `dmarc@${dialect.sender}`,
    to,
    subject: `Report Domain: ${report.domain}`,
    contentType: dialect.contentType,
    file,
    content,
  })
}

export interface AttachedMail {
  from?: string
  to?: string
  subject?: string
  contentType?: string
  file?: string
  content: Buffer
}

export function attachedMail({ from = 'dmarc@reporter.test', to = 'x@y.test', subject = 'Report', ...part }: AttachedMail): Buffer {
  const { contentType = 'application/octet-stream', file = 'report', content } = part
  return Buffer.from(
    [
      `From: <${from}>`,
      `To: <${to}>`,
      `Subject: ${subject}`,
      `Message-ID: <${file}@${from.split('@')[1]}>`,
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary="b"',
      '',
      '--b',
      'Content-Type: text/plain',
      '',
      'This is an aggregate report.',
      '--b',
      `Content-Type: ${contentType}; name="${file}"`,
      'Content-Transfer-Encoding: base64',
      `Content-Disposition: attachment; filename="${file}"`,
      '',
      content.toString('base64').replace(/.{76}/g, '$&\r\n'),
      '--b--',
      '',
    ].join('\r\n'),
  )
}

/** Numbers from 0 to `below` - 1. */
export type Draw = (below: number) => number

/** The same for the same seed. */
export function seededDraw(seed: number): Draw {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** `number`: also the report's id. */
export function generateReport(number: number, domain: string, lastDayMs: number, draw: Draw): GeneratedReport {
  const names = Object.keys(dialects)
  const dialect = names[number % names.length] as string
  const begin = Math.floor(lastDayMs / 86_400_000 - draw(20)) * 86_400 + (dialect === 'yahoo' ? 3_600 * draw(20) : 0)
  const records = Array.from({ length: 1 + draw(30) }, (): GeneratedRecord => {
    const headerFrom = draw(4) === 0 ? `news.${domain}` : domain
    const dkim = draw(3) > 0 ? 'pass' : 'fail'
    const spf = draw(2) > 0 ? 'pass' : 'fail'
    const own = { domain, selector: `s${draw(3)}`, result: dkim }
    const other = { domain: 'esp.test', selector: 'k1', result: 'pass' }
    return {
      source: draw(5) === 0 ? `2001:DB8:0:0:${draw(3)}::${(1 + draw(9)).toString(16)}` : `192.0.2.${draw(40)}`,
      count: 1 + draw(1000),
      disposition: (['none', 'none', 'quarantine', 'reject'] as const)[draw(4)] as 'none',
      dkim,
      spf,
      headerFrom,
      signatures: draw(6) === 0 ? [] : draw(3) === 0 ? [other, own, own] : [own],
      spfDomain: spf === 'pass' ? `rp.${domain}` : 'bounces.esp.test',
    }
  }).map((one) => (one.signatures.length === 0 ? { ...one, dkim: 'fail' as const } : one))
  return { dialect, domain, id: `${dialect}-${number}`, beginSeconds: begin, endSeconds: begin + 86_399, records }
}
