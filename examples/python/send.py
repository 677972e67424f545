"""Sends an email; after a lost response it retries without sending twice. Standard library only: python3 send.py"""

import http.client
import json
import os
import time
import urllib.error
import urllib.request
import uuid


def send(email, tries=3):
    request = urllib.request.Request(
        os.environ["POSTRIDER_URL"] + "/v1/emails",
        data=json.dumps(email).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["POSTRIDER_KEY"],
            "Content-Type": "application/json",
            "Idempotency-Key": str(uuid.uuid4()),
        },
    )
    for left in reversed(range(tries)):
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            if refused.code not in (429, 500, 502, 503, 504) or left == 0:
                raise SystemExit(refused.read().decode()) from None
            time.sleep(min(60, float(refused.headers.get("Retry-After") or 1)))
        except (OSError, http.client.HTTPException):
            if left == 0:
                raise
            time.sleep(1)


sent = send(
    {
        "from": "Shop <shop@simulator.test>",
        "to": ["delivered@simulator.test"],
        "subject": "Your order",
        "html": "<p>Thank you.</p>",
    }
)
print(sent["id"], sent["status"])
