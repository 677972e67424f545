/** Templates with the looks of a shop's mail, for the pictures of the dashboard. */
/** A band with the name, a heading and a button. */
const letter = (colour: string, content: string) => `<div style="max-width: 600px; font-family: Arial, sans-serif; color: #222">
<div style="padding: 28px; background: ${colour}; color: #fff; font-size: 26px; font-weight: bold">Agency</div>
<div style="padding: 28px; font-size: 18px; line-height: 1.6">
${content}
</div>
</div>
`
const button = (address: string, text: string) =>
  `<p><a href="${address}" style="display: inline-block; padding: 14px 28px; background: #222; color: #fff; text-decoration: none">${text}</a></p>`
export const orderTemplate = letter(
  '#1f6f54',
  `<h1 style="font-size: 36px">Hello {{ name }},</h1>
<p>your order {{ number }} has left our warehouse.</p>
${button('https://agency.example/orders/{{ number }}', 'Follow it')}`,
)
export const welcomeTemplate = letter(
  '#8a4b0f',
  `<h1 style="font-size: 36px">Welcome to {{ shop }}</h1>
<p>Good to have you here. Here is what to do first.</p>
${button('https://agency.example/start', 'Begin')}`,
)
