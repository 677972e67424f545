#!/bin/sh
# Sends an email, and may be run again with the same key without sending a second one: sh send.sh order-1042
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
