#!/bin/sh
# Sends an email over SMTP with implicit TLS, using curl only: sh send.sh
# SMTP_HOST (POSTRIDER_HOSTNAME of the service) and SMTP_PORT (2465), SMTP_USER and SMTP_KEY of a login, and MAIL_FROM at a verified domain.
# By default, the certificate is self-signed: CURL_CA_BUNDLE=data/smtp-certificate.pem of the service trusts it.
set -eu
curl --silent --show-error "smtps://$SMTP_HOST:$SMTP_PORT" \
  --user "$SMTP_USER:$SMTP_KEY" --login-options AUTH=PLAIN \
  --mail-from "$MAIL_FROM" --mail-rcpt ann@simulator.test --crlf --upload-file - <<MESSAGE
From: Shop <$MAIL_FROM>
To: ann@simulator.test
Subject: Your order
X-Postrider-Tag: curl
Content-Type: text/plain; charset=utf-8

Thank you.
MESSAGE
