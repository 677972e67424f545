/** DMARC and TLS reports, the mail that carries them, and the HTML of messages to check. */
import { readAggregate } from '../../../../src/domain-reports/aggregate-report.ts'
import { readReportMail } from '../../../../src/domain-reports/read-report-mail.ts'
import { scanXml } from '../../../../src/domain-reports/scan-xml.ts'
import { readTlsReport } from '../../../../src/domain-reports/tls-report.ts'
import { scanHtmlFacts } from '../../../../src/message-checks/scan-html.ts'
import { type Reader, reader } from '../reader.ts'

const maxReport = 20_971_520
const maxMessage = 20_971_520

const metadata = '<report_metadata><date_range><begin>1700000000</begin><end>1700086399</end></date_range></report_metadata>'
const policy = '<policy_published><domain>a.example</domain></policy_published>'
const recordUnits = [
  '<record><row><source_ip>192.0.2.{i}</source_ip><count>1</count></row></record>',
  '<record><row><count>1</count></row><identifiers><header_from>a{i}.example</header_from></identifiers></record>',
  '<auth_results><dkim><domain>a{i}.example</domain><result>pass</result></dkim></auth_results>',
  '<record>',
  '</record>',
  '<dkim>',
  '<count>1</count>',
  '<a b="',
  '<a>',
  '</a>',
  '<a/>',
  '<!--',
  '-->',
  '<![CDATA[',
  ']]>',
  '&amp;',
  '&#65;',
  '&',
  '"',
  '>',
  '<?a ?>',
  ' ',
]
const nests: [string, string][] = [
  ['<a>', '</a>'],
  ['<record>', '</record>'],
]
const nothing = { open() {}, text() {}, close() {} }

export const domainReportReaders: readonly Reader[] = [
  reader({
    name: 'XML of a report',
    longest: maxReport,
    reads: ['src/domain-reports/scan-xml.ts scanXml'],
    frames: [
      ['<feedback>', '</feedback>'],
      ['<feedback a="', '">'],
    ],
    units: recordUnits,
    nests,
    read: (octets) => scanXml(octets.toString('utf8'), nothing),
  }),
  reader({
    name: 'DMARC report',
    longest: maxReport,
    reads: ['src/domain-reports/aggregate-report.ts readAggregate'],
    frames: [
      [`<feedback>${metadata}${policy}`, '</feedback>'],
      [`<feedback>${metadata}${policy}<record>`, '<row><count>1</count></row></record></feedback>'],
    ],
    units: recordUnits,
    nests,
    read: (octets) => readAggregate(octets.toString('utf8')),
  }),
  reader({
    name: 'TLS report',
    longest: maxReport,
    reads: ['src/domain-reports/tls-report.ts readTlsReport'],
    frames: [
      ['{"date-range":{"start-datetime":"2026-01-01","end-datetime":"2026-01-02"},"policies":[', ']}'],
      ['{"policies":[{"failure-details":[', ']}]}'],
    ],
    units: ['{"summary":{}},', '{"policy":{"policy-domain":"a{i}"}},', '"a{i}":1,', '"\\\\"', '"', '[', ']', '{', '}', ',', ' '],
    nests: [
      ['[', ']'],
      ['{"a":', '}'],
    ],
    read: (octets) => readTlsReport(octets.toString('utf8')),
  }),
  reader({
    name: 'mail with a report',
    longest: maxMessage,
    reads: ['src/domain-reports/read-report-mail.ts readReportMail'],
    frames: [
      ['From: a@b.example\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: application/xml\r\n\r\n', '\r\n--b--'],
      ['From: a@b.example\r\nContent-Type: application/xml\r\n\r\n<feedback>', '</feedback>'],
      ['From: a@b.example\r\n', '\r\n\r\n{}'],
    ],
    units: [
      '\r\n--b\r\n',
      'Content-Type: application/gzip\r\n',
      '\r\n\r\n',
      '<feedback>',
      '{',
      'PK\x03\x04',
      'PK\x05\x06',
      '\x1f\x8b',
      ' ',
      '<a>',
    ],
    encoding: 'latin1',
    read: (octets) => readReportMail(octets, 1_700_000_000_000),
  }),
  reader({
    name: 'HTML to check',
    longest: 5_242_880,
    reads: ['src/message-checks/scan-html.ts scanHtmlFacts'],
    frames: [
      ['<p>', '</p>'],
      ['<img ', '>'],
      ['<style>', ''],
    ],
    units: [
      '<img src="a">',
      '<img alt',
      '<',
      '>',
      '"',
      "'",
      '<!--',
      '-->',
      '<script>',
      '</script',
      '<style>',
      ' color:',
      ' bgcolor =',
      ' ',
      '</',
    ],
    nests: [['<p>', '</p>']],
    read: (octets) => scanHtmlFacts(octets.toString('utf8')),
  }),
]
