// Sends an email over SMTP with STARTTLS. npm install nodemailer, then: node send.mjs
import { createTransport } from 'nodemailer'

const { POSTRIDER_SMTP_HOST: host, POSTRIDER_SMTP_PORT: port, POSTRIDER_SMTP_USER: user, POSTRIDER_SMTP_KEY: pass, MAIL_FROM } = process.env

const transport = createTransport({ host, port: Number(port), requireTLS: true, auth: { user, pass } })
const { response } = await transport.sendMail({
  from: { name: 'Shop', address: MAIL_FROM },
  to: 'ann@simulator.test',
  subject: 'Your order',
  html: '<p>Thank you.</p>',
  headers: { 'X-Postrider-Tag': 'nodemailer', 'X-Postrider-Metadata': JSON.stringify({ order: '1042' }) },
})
console.log(response)
