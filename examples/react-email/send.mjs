// Renders an email with React Email and sends it. npm install, then: node send.mjs
import { Body, Button, Container, Head, Html, Preview, Text } from '@react-email/components'
import { render } from '@react-email/render'
import { createElement as h } from 'react'

const Receipt = ({ name, url }) =>
  h(
    Html,
    { lang: 'en' },
    h(Head),
    h(Preview, null, 'Thank you for your order'),
    h(Body, null, h(Container, null, h(Text, null, `Thank you, ${name}.`), h(Button, { href: url }, 'Your order'))),
  )

const email = h(Receipt, { name: 'Ann', url: 'https://shop.example/orders/1042' })
const answer = await fetch(`${process.env.POSTRIDER_URL}/v1/emails`, {
  method: 'POST',
  headers: {
    authorization: `Bearer ${process.env.POSTRIDER_KEY}`,
    'content-type': 'application/json',
    'idempotency-key': 'react-email-order-1042',
  },
  body: JSON.stringify({
    from: 'Shop <shop@simulator.test>',
    to: ['delivered@simulator.test'],
    subject: 'Your order',
    html: await render(email),
    text: await render(email, { plainText: true }),
  }),
})
const { data, error } = await answer.json()
if (error) throw new Error(`${error.code}: ${error.message}`)
console.log(data.id, data.status)
