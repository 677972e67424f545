#!/bin/sh
# Sends an email; running it again with the same key does not send a second one: sh send.sh order-1042
set -eu
curl --silent --show-error --fail-with-body --retry 3 "$POSTRIDER_URL/v1/emails" \
  --header "Authorization: Bearer $POSTRIDER_KEY" \
  --header 'Content-Type: application/json' \
  --header "Idempotency-Key: ${1:?an idempotency key}" \
  --data '{
    "from": "Shop <shop@simulator.test>",
    "to": ["delivered@simulator.test"],
    "subject": "Your order",
    "text": "Thank you."
  }'
