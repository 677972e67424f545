#!/bin/sh
# Sends an email over SMTP with implicit TLS, using curl only. POSTRIDER_SMTP is host:port, such as mail.example.com:2465.
set -eu
curl --silent --show-error "smtps://$POSTRIDER_SMTP" \
  --user "$POSTRIDER_SMTP_USER:$POSTRIDER_SMTP_KEY" --login-options AUTH=PLAIN \
  --mail-from "$MAIL_FROM" --mail-rcpt ann@simulator.test --crlf --upload-file - <<MESSAGE
From: Shop <$MAIL_FROM>
To: ann@simulator.test
Subject: Your order
X-Postrider-Tag: curl
Content-Type: text/plain; charset=utf-8

Thank you.
MESSAGE
