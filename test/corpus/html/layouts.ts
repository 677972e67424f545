/** Layouts of programs and people that write email: each turns the same letter into HTML of its own kind. */
import { button, fontFamily, image, type Letter, link, list, social } from './letters.ts'

const head = ({ title, language, direction }: Letter, style = '') =>
  `<html lang="${language}" dir="${direction}" xmlns="http://www.w3.org/1999/xhtml" xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office">
<head>
<meta http-equiv="Content-Type" content="text/html; charset=utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="https://fonts.example.net/css?family=Lato:400,700&amp;display=swap">
<title>${title}</title>
<!--[if gte mso 9]><xml><o:OfficeDocumentSettings><o:AllowPNG/><o:PixelsPerInch>96</o:PixelsPerInch></o:OfficeDocumentSettings></xml><![endif]-->
<style type="text/css">
  body { margin: 0; padding: 0; -webkit-text-size-adjust: 100%; } a > img { border: 0 } td > a { color: #16c }
  @media only screen and (max-width: 600px) { .w { width: 100% !important } }
  ${style}
</style>
</head>`

const preheader = (letter: Letter) =>
  `<div style="display:none;max-height:0;overflow:hidden;mso-hide:all">${letter.title}${'&nbsp;&zwnj;'.repeat(30)}</div>`

export const layouts: Record<string, (letter: Letter) => string> = {
  'nested tables': (letter) => `<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
${head(letter)}
<body bgcolor="#f4f4f4" style="${fontFamily(letter)}">
${preheader(letter)}
<table width="100%" cellpadding="0" cellspacing="0" border="0"><tr><td align="center">
  <table class="w" width="600" cellpadding="20" bgcolor="#ffffff"><tr><td>
    <table width="100%"><tr><td>${link(letter, image(letter, 120, 40))}</td><td align="right">${link(letter, letter.action)}</td></tr></table>
    <h1 style="font-size:22px">${letter.title}</h1>
    <p>${letter.text} ${link(letter, letter.action)}.</p>
    <table align="center"><tr><td bgcolor="#1166cc" style="border-radius:4px;padding:12px 24px">${button(letter)}</td></tr></table>
    ${list(letter)}
  </td></tr></table>
  ${social(letter)}
</td></tr></table>
</body>
</html>`,

  'ghost tables': (letter) => `<!doctype html>
${head(letter, '.col { display: inline-block; max-width: 290px; vertical-align: top }')}
<body style="${fontFamily(letter)}">
<!--[if mso | IE]><table role="presentation" width="600"><tr><td width="290"><![endif]-->
<div class="col"><p>${letter.text}</p>${link(letter, letter.action)}</div>
<!--[if mso | IE]></td><td width="290"><a href="https://mso.example/only">x</a><![endif]-->
<div class="col">${list(letter)}</div>
<!--[if mso | IE]></td></tr></table><![endif]-->
<!--[if !mso]><!--><p>${link(letter, letter.title)}</p><!--<![endif]-->
<![if !vml]><p>${link(letter, letter.action)}</p><![endif]>
${social(letter)}
</body></html>`,

  'VML button and background': (letter) => `<!doctype html>
${head(letter)}
<body style="${fontFamily(letter)}">
<div><!--[if gte mso 9]><v:rect xmlns:v="urn:schemas-microsoft-com:vml" fill="true" stroke="false" style="width:600px;height:120px"><v:fill type="tile" src="https://img.example/bg.png" color="#7bceeb"/><v:textbox inset="0,0,0,0"><![endif]-->
<div style="background:#7bceeb url(data:image/gif;base64,R0lGODlhAQABAIAAAP8AAP///yH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==);padding:30px"><h2>${letter.title}</h2>
<!--[if mso]><v:roundrect href="https://mso.example/button?a=1&amp;b=2" style="height:40px;v-text-anchor:middle;width:200px" arcsize="10%" fillcolor="#d62828"><w:anchorlock/><center style="color:#fff">${letter.action}</center></v:roundrect><![endif]-->
<!--[if !mso]><!-- -->${button(letter, 'background:#d62828;border-radius:4px;color:#fff;display:inline-block;line-height:40px;width:200px;text-align:center')}<!-- <![endif]-->
</div><!--[if gte mso 9]></v:textbox></v:rect><![endif]--></div>
<p>${letter.text}</p>${social(letter)}
</body></html>`,

  'modern blocks': (letter) => `<!DOCTYPE html>
${head(letter, `:root { color-scheme: light dark } .card { border: 1px solid #ddd; border-radius: 8px; padding: 16px; margin: 8px } .card:hover { background: #eee }
  @supports (display: grid) { .grid { display: grid; grid-template-columns: 1fr 1fr; gap: 8px } }`)}
<body style="${fontFamily(letter)}"><main class="grid">
${letter.items.map((item) => `<section class="card"><h3>${link(letter, item)}</h3><p>${letter.text}</p>${button(letter)}</section>`).join('\n')}
</main><footer>${social(letter)}</footer></body></html>`,

  'a webmail composer': (letter) =>
    `<div dir="${letter.direction}">${letter.text}<div><br></div><div>${link(letter, letter.action)}</div><div><br></div>-- <br><div class="gmail_signature"><div>${letter.title}<br><a href="mailto:hello@shop.example" target="_blank">hello@shop.example</a> | <a href="tel:+4930123456">+49 30 123456</a> | ${link(letter, 'shop.example')}</div></div></div><br><div class="gmail_quote"><div class="gmail_attr">On Mon, 3 Aug 2026 at 10:12, Ann &lt;<a href="mailto:ann@one.example">ann@one.example</a>&gt; wrote:<br></div><blockquote class="gmail_quote" style="margin:0 0 0 .8ex;border-left:1px solid #ccc;padding-left:1ex">${letter.text} ${link(letter, letter.title)}</blockquote></div>`,

  'a word processor': (letter) => `<html xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" xmlns:w="urn:schemas-microsoft-com:office:word" xmlns:m="http://schemas.microsoft.com/office/2004/12/omml" xmlns="http://www.w3.org/TR/REC-html40"><head><meta name=Generator content="Microsoft Word 15 (filtered medium)"><!--[if !mso]><style>v\\:* {behavior:url(#default#VML);}</style><![endif]--><style><!--
@font-face {font-family:Calibri; panose-1:2 15 5 2 2 2 4 3 2 4;}
p.MsoNormal, li.MsoNormal {margin:0cm; font-size:11.0pt;}
a:link, span.MsoHyperlink {mso-style-priority:99; color:#0563C1; text-decoration:underline;}
--></style><!--[if gte mso 9]><xml><o:shapedefaults v:ext="edit" spidmax="1026" /></xml><![endif]--></head><body lang=${letter.language} link="#0563C1" vlink="#954F72" style='word-wrap:break-word'><div class=WordSection1><p class=MsoNormal>${letter.text}<o:p></o:p></p><p class=MsoNormal><o:p>&nbsp;</o:p></p><p class=MsoNormal>${link(letter, letter.action)}<o:p></o:p></p><p class=MsoNormal><a href="#_Toc1">1</a> <a name="_Toc1">${letter.title}</a></p></div></body></html>`,

  'a phone': (letter) =>
    `<html><head><meta http-equiv="content-type" content="text/html; charset=utf-8"></head><body dir="auto"><div dir="${letter.direction}"></div><div>${letter.text}</div><div>${link(letter, letter.action)}</div><br id="lineBreakAtBeginningOfSignature"><div dir="ltr">Sent from my phone</div><div dir="ltr"><br><blockquote type="cite">${letter.text} ${link(letter, letter.title)}</blockquote></div></body></html>`,

  AMP: (letter) => `<!doctype html>
<html ⚡4email data-css-strict>
<head><meta charset="utf-8"><script async src="https://cdn.ampproject.org/v0.js"></script>
<script async custom-element="amp-carousel" src="https://cdn.ampproject.org/v0/amp-carousel-0.1.js"></script>
<style amp4email-boilerplate>body{visibility:visible}</style><style amp-custom>a[target]{color:#16c} .c{padding:8px}</style></head>
<body>
<amp-carousel width="300" height="100" type="slides">${letter.items.map((item) => `<div class="c">${link(letter, item)}</div>`).join('')}</amp-carousel>
<template type="amp-mustache"><a href="https://template.example/{{id}}">{{title}}</a></template>
<p>${letter.text}</p>${button(letter)}
</body></html>`,

  'framework output': (letter) => `<!doctype html>
${head(letter)}
<body style="word-spacing:normal;background-color:#fafafa">
<div style="background-color:#fafafa">
<!--[if mso | IE]><table align="center" border="0" cellpadding="0" cellspacing="0" role="presentation" style="width:600px;" width="600" bgcolor="#ffffff" ><tr><td style="line-height:0px;font-size:0px;mso-line-height-rule:exactly;"><![endif]-->
<div style="background:#ffffff;margin:0px auto;max-width:600px"><table align="center" border="0" cellpadding="0" cellspacing="0" role="presentation" style="background:#ffffff;width:100%"><tbody><tr><td style="direction:${letter.direction};font-size:0px;padding:20px 0;text-align:center">
<table border="0" cellpadding="0" cellspacing="0" role="presentation" width="100%"><tbody>
<tr><td style="font-size:0px;padding:10px 25px;word-break:break-word"><div style="${fontFamily(letter)};font-size:16px;line-height:1.4">${letter.text}</div></td></tr>
<tr><td align="center" vertical-align="middle" style="font-size:0px;padding:10px 25px"><table border="0" role="presentation" style="border-collapse:separate;line-height:100%"><tbody><tr><td align="center" bgcolor="#414141" role="presentation" style="border:none;border-radius:3px;cursor:auto;background:#414141" valign="middle">${button(letter, 'display:inline-block;background:#414141;color:#ffffff;font-size:13px;padding:10px 25px')}</td></tr></tbody></table></td></tr>
</tbody></table></td></tr></tbody></table></div>
<!--[if mso | IE]></td></tr></table><![endif]-->
${social(letter)}
</div></body></html>`,

  'XHTML in capitals': (letter) => `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">
<HTML><HEAD><TITLE>${letter.title}</TITLE><STYLE><!-- BODY { COLOR: #222 } --></STYLE></HEAD>
<BODY BGCOLOR=#FFFFFF TEXT=#000000 LINK=#0000FF>
<FONT FACE="Arial, Helvetica" SIZE=2><CENTER><B>${letter.title}</B></CENTER><BR>
${letter.text}<P>${link(letter, `<FONT COLOR=red>${letter.action}</FONT>`)}
<HR NOSHADE SIZE=1><UL><LI>${letter.items.map((item) => link(letter, item)).join('<LI>')}</UL></FONT>
</BODY></HTML>`,

  'a receipt': (letter) => `<!DOCTYPE html>${head(letter, 'td { border-bottom: 1px solid #eee; padding: 4px 8px } .sum { font-weight: bold }')}
<body><h2>${letter.title}</h2><table width="100%"><thead><tr><th align="left">#</th><th>·</th><th align="right">€</th></tr></thead><tbody>
${letter.items.map((item, index) => `<tr><td>${index + 1}</td><td>${link(letter, item)}</td><td align="right">${(index * 7.35 + 9.99).toFixed(2)}</td></tr>`).join('\n')}
<tr class="sum"><td colspan="2">∑</td><td align="right">99.90</td></tr></tbody></table>
<p>${letter.text}</p><p>${link(letter, letter.action)} · <a href="https://bank.example/pay?iban=DE02&amp;amount=99,90&amp;ref=A%2F17" data-no-track>SEPA</a></p></body></html>`,

  'a digest': (letter) => `<!DOCTYPE html>${head(letter)}<body><ol>
${Array.from({ length: 40 }, (_, index) => `<li><p>${link(letter, `${letter.items[index % letter.items.length]} ${index}`)}<br><small>${letter.text}</small> <a href="#top">↑</a></p>`).join('\n')}
</ol>${social(letter)}</body></html>`,

  'one line': (letter) =>
    `<!doctype html><html><body style="${fontFamily(letter)}"><p>${letter.text.repeat(12)}</p><p>${button(letter)}</p><p>${link(letter, letter.action)}</p></body></html>`.replace(/\n/g, ' '),

  'an image map': (letter) => `<!DOCTYPE html>${head(letter)}<body>
<img src="data:image/gif;base64,R0lGODlhAQABAIAAAP8AAP///yH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==" width="400" height="100" usemap="#nav" alt="${letter.title}">
<map name="nav"><area shape="rect" coords="0,0,100,100" ${letter.href()} alt="1"><area shape=circle coords=150,50,40 nohref><AREA SHAPE=POLY COORDS="200,0,300,0,250,100" ${letter.href()}></map>
<p>${letter.text} ${link(letter, letter.action)}</p></body></html>`,

  'a form and media': (letter) => `<!DOCTYPE html>${head(letter)}<body>
<form action="https://forms.example/post?a=1" method="get"><label>${letter.title} <input name="q" value="<a href='https://not.example/'>"></label><textarea><a href="https://not.example/">x</a></textarea><button formaction="https://forms.example/b">OK</button></form>
<noscript>${link(letter, letter.action)}</noscript><details open><summary>${letter.title}</summary>${link(letter, letter.action)}</details>
<svg width="120" height="20" viewBox="0 0 120 20"><text x="0" y="15">${letter.language}</text></svg><video poster="https://img.example/p.png" controls></video>
<iframe src="about:blank" width="10" height="10"><a href="https://not.example/">x</a></iframe>${button(letter)}</body></html>`,

  'a reply with marks': (letter) => `<html><body><p>&gt; ${letter.text}<br>&gt;&gt; 1 < 2 & 3 > 2 &copy &amp;lt; ${link(letter, letter.action)} <3</p><pre>
if (a<b && c>d) { href="https://not.example/" }
<a
  class="x"
  ${letter.href()}
  style='color:green'
>${letter.title}</a>
</pre><p>${letter.text}</body></html>`,
}
