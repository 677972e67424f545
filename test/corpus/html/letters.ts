/** Texts of letters in several languages, and their writers' ways of writing links. The same seed gives the same letters. */

export interface Letter {
  language: string
  direction: 'ltr' | 'rtl'
  title: string
  text: string
  action: string
  items: readonly string[]
  /** The next link's attribute, written in this letter's style. */
  href(): string
}

const said: Omit<Letter, 'href'>[] = [
  ['en', 'Your order is on its way', 'Thank you, Ann &amp; Bob. It leaves our house today and should be with you on Tuesday.', 'Follow your parcel', 'Tea', 'Pot', 'Cups'],
  ['de', 'Ihre Bestellung ist unterwegs', 'Vielen Dank für Ihr Vertrauen – die Lieferung über 1.299,00&nbsp;€ kommt am Dienstag.', 'Sendung verfolgen', 'Öl', 'Äpfel', 'Straße'],
  ['fr', 'C’est l’été', 'Découvrez nos offres d’été&nbsp;: jusqu’à −50&nbsp;% sur tout le site&nbsp;!', 'J’en profite', 'Été', 'Noël', 'Œuvre'],
  ['ar', 'طلبك في الطريق', 'شكراً لك. غادر طلبك رقم 1042 مستودعنا اليوم وسيصل يوم الثلاثاء.', 'تتبع الشحنة', 'شاي', 'إبريق', 'أكواب'],
  ['he', 'ההזמנה שלך בדרך', 'תודה! ההזמנה מספר 1042 יצאה היום ותגיע ביום שלישי (ABC-123).', 'מעקב', 'תה', 'קומקום', 'כוסות'],
  ['zh', '您的订单已发货', '感谢您的购买。您的包裹今天已从仓库发出，预计星期二送达。', '查看物流', '茶', '壶', '杯'],
  ['ja', 'ご注文の商品を発送しました', 'このたびはご利用いただきありがとうございます。火曜日に到着予定です。', '配送状況', 'お茶', '急須', '湯呑'],
  ['ru', 'Ваш заказ в пути', 'Спасибо! Посылка вышла сегодня и прибудет во вторник — ждите звонка.', 'Отследить', 'Чай', 'Чайник', 'Чашки'],
  ['hi', 'आपका ऑर्डर रास्ते में है', 'धन्यवाद। आपका पैकेज आज निकला है और मंगलवार को पहुँचेगा। 🚚🎉', 'ट्रैक करें', 'चाय', 'केतली', 'कप'],
].map(([language = '', title = '', text = '', action = '', ...items]) => ({
  language,
  direction: ['ar', 'he'].includes(language) ? 'rtl' : 'ltr',
  title,
  text,
  action,
  items,
}))

/** The targets as intended; each style writes them into HTML in its own way. */
const targets = [
  'https://shop.example/',
  'https://shop.example/orders/1042?utm_source=mail&utm_medium=email&utm_campaign=a%20b#items',
  'http://www.other.example:8080/p/a%2Fb?x=1&copy=2&reg=3&lt=4&amp=5',
  'https://shop.example/reset?token=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U&e=a+b@c.example',
  'https://münchen.example/straße?q=grüße&name=Zoë#öffnen',
  'HTTPS://SHOP.EXAMPLE/UPPER?A=B',
  'https://shop.example/search?q=a|b&filter[]=c&d=%22quoted%22;e=f',
  "https://shop.example/it's?a='b'",
  'https://own.example/not-counted',
  'https://deep.own.example/not-counted?a=1&b=2',
  'mailto:help@shop.example?subject=Order%201042&body=Hello',
  'https://xn--mnchen-3ya.example/a/../b/./c//d',
  'http://192.0.2.7/a?b',
  'https://user:word@shop.example/private',
  'tel:+493012345678',
  '#section',
  'https://shop.example/unsubscribe?u=1&l=2',
  '//cdn.example/relative-scheme',
  'https://shop.example/%E6%97%A5%E6%9C%AC/\u65e5\u672c?\u5b57=\u5024',
  'sms:+493012345678',
]

const attribute = (url: string, mark: string) => url.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll(mark === "'" ? "'" : '"', mark === "'" ? '&#39;' : '&quot;')

export const linkStyles: Record<string, (url: string) => string> = {
  plain: (url) => `href="${attribute(url, '"')}"`,
  'bare ampersands': (url) => `href="${url.replaceAll('"', '&quot;')}" target="_blank"`,
  'numeric references': (url) => `href="${[...attribute(url, '"').replaceAll('&amp;', '&#38;')].map((c, i) => (c === '/' && i % 2 ? '&#x2F;' : c)).join('')}"`,
  'hexadecimal references': (url) => `class=a href="${attribute(url, '"').replaceAll('&amp;', '&#x26').replaceAll(':', '&colon;')}"`,
  'single quotes': (url) => `style='color:#16c' href='${attribute(url, "'")}'`,
  'no quotes': (url) => `href=${attribute(url, '"').replaceAll("'", '&apos;')} class=x`,
  capitals: (url) => `CLASS="A" HREF="${attribute(url, '"')}" TARGET=_top`,
  'space everywhere': (url) => `\n   title = "a > b"\n   href\t=\n "  ${attribute(url, '"')}\n"   `,
  'no track': (url) => `href="${attribute(url, '"')}"${url.length % 3 === 0 ? ' data-no-track' : ''}`,
}

/** Letter `number`, its links written with `style`. */
export function letterOf(number: number, style: (url: string) => string): Letter {
  let next = number * 7
  return { ...(said[number % said.length] as Omit<Letter, 'href'>), href: () => style(targets[next++ % targets.length] as string) }
}

export const languages = said.length

export const link = (letter: Letter, text: string) => `<a ${letter.href()}>${text}</a>`
export const button = (letter: Letter, style = 'color:#ffffff;text-decoration:none') => `<a ${letter.href()} role="button" rel='noopener'><span style="${style}">${letter.action}</span></a>`
export const list = (letter: Letter) => `<ul>${letter.items.map((item) => `<li>${link(letter, item)}</li>`).join('')}</ul>`
export const image = (letter: Letter, width: number, height: number) =>
  `<img src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==" width="${width}" height="${height}" alt="${letter.title}">`
export const social = (letter: Letter) =>
  `<p style="font-size:11px;color:#777">${['web', 'app', 'news'].map((word) => link(letter, word)).join(' | ')} | <a href="mailto:help@shop.example">@</a></p>`
export const fontFamily = ({ language }: Letter) => `font-family:${language === 'en' ? "Georgia,'Times New Roman',serif" : 'Arial,sans-serif'}`
