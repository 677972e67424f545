/** Every reader of external octets, and the functions that only have the name of a reader. The test compares both lists with the source. */
import { dnsReaders } from './readers/dns.ts'
import { domainReportReaders } from './readers/domain-reports.ts'
import { httpReaders } from './readers/http.ts'
import { mailReaders } from './readers/mail.ts'
import { postalReaders } from './readers/postal.ts'
import { reportReaders } from './readers/reports.ts'
import { sesReaders } from './readers/ses.ts'
import { smtpReaders } from './readers/smtp.ts'
import { vendorReaders } from './readers/vendors.ts'

export const readers = [
  ...reportReaders,
  ...mailReaders,
  ...dnsReaders,
  ...httpReaders,
  ...postalReaders,
  ...smtpReaders,
  ...vendorReaders,
  ...domainReportReaders,
  ...sesReaders,
]

const partOfReport = 'reached by readReport, with all that it is given there'
const operators = 'reads what the operator has written or kept, who can do worse to the machine than to slow it'
const ruleFiles = 'reads the rule files, which are a part of Postrider'

/** Functions that need no reader of their own, with the reason. */
export const noReaders: Readonly<Record<string, string>> = {
  'src/delivery/waiting-mail.ts readWaiting': 'a query of the queue',
  'src/webhooks/payload.ts parseEventNames': 'splits a query parameter of a few kilobytes once, or an argument of the command line',
  'src/templates/liquid.ts parseSource': 'runs in a child process with a budget of processor time: src/templates/liquid.test.ts',
  'src/delivery/read-content.ts readContent':
    'stored content, by readers that are searched; test/faults/large-bodies.test.ts limits its time',
  'src/imports/export-records.ts readExport': "an operator's own file, read by the command line alone",
  'src/imports/vendor-suppressions.ts readSuppressions': "an operator's own file, read by the command line alone",
  'src/bounces/report-addresses.ts addressesIn': partOfReport,
  'src/bounces/report-addresses.ts typedAddress': partOfReport,
  'src/bounces/delivery-status.ts readDeliveryStatus': partOfReport,
  'src/bounces/rule-files.ts readRuleFile': ruleFiles,
  'src/bounces/rule-files.ts parseRuleFile': ruleFiles,
  'src/bounces/reply-rules.ts readSynonyms': ruleFiles,
  'src/bounces/reply-rules.ts parseRules': ruleFiles,
  'src/bounces/reply-patterns.ts parsePattern': ruleFiles,
  'src/bounces/reply-patterns.ts parseSynonyms': ruleFiles,
  'src/bounces/phrases.ts parsePhraseLists': ruleFiles,
  'src/bounces/report-hints.ts parseHints': ruleFiles,
  'src/returns/report-reader.ts readHere': 'calls readingOf',
  'src/domain-reports/domain-reports.ts readReportMailHere': 'calls readReportMail',
  'src/emails/content.ts decodeContent': 'reads what encodeContent has written into our own table',
  'src/base/config.ts readConfig': operators,
  'src/base/delivery-settings.ts parseRelay': operators,
  'src/base/dns-update-target.ts parseDnsUpdate': operators,
  'src/dns-updates/dns-updates.ts readDnsUpdates': operators,
  'src/dkim/keys.ts readRsaKey': operators,
  'src/cli/input-lines.ts readLines': operators,
  'src/base/child-processes.ts readFromParent': operators,
  'src/inbound/certificate.ts readCertificate': operators,
  'src/doctor/platform-records.ts readPlatform': operators,
  'src/simulator/scenario.ts readScenario': operators,
  'src/cli/command-definition.ts parseCall': operators,
  'src/cli/classify.ts classifyCommand': operators,
  'src/cli/classify.ts classifyLines': operators,
  'src/db/backup-frames.ts readFrames': operators,
  'src/db/embedded-cluster.ts readPassword': operators,
  'src/http/dashboard-files.ts readPages': 'reads the files of our own build',
}
