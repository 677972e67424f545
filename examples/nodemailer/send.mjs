// Sends an email over SMTP with STARTTLS. npm install nodemailer, then: node send.mjs
// SMTP_HOST (POSTRIDER_HOSTNAME of the service) and SMTP_PORT (2587), SMTP_USER and SMTP_KEY of a login, and MAIL_FROM at a verified domain.
// By default, the certificate is self-signed: NODE_EXTRA_CA_CERTS=data/smtp-certificate.pem of the service trusts it.
import { createTransport } from 'nodemailer'

const { SMTP_HOST: host, SMTP_PORT: port, SMTP_USER: user, SMTP_KEY: pass, MAIL_FROM } = process.env

const transport = createTransport({ host, port: Number(port), requireTLS: true, auth: { user, pass } })
const { response } = await transport.sendMail({
  from: { name: 'Shop', address: MAIL_FROM },
  to: 'ann@simulator.test',
  subject: 'Your order',
  html: '<p>Thank you.</p>',
  headers: { 'X-Postrider-Tag': 'nodemailer', 'X-Postrider-Metadata': JSON.stringify({ order: '1042' }) },
})
console.log(response)
