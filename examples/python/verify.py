"""Verifies a webhook. Standard library only; as a CGI program it answers 204 if it is genuine, otherwise 400."""

import base64
import hashlib
import hmac
import json
import os
import sys
import time


def verified(body: bytes, headers, secret: str):
    """`body` as received. Returns the event, or None if it is not genuine or more than five minutes old."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or len(timestamp) > 15 or abs(time.time() - int(timestamp)) > 300:
        return None
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    if len(key) < 16:  # Anybody could sign with an empty secret.
        raise ValueError("the secret is missing, or is not a secret")
    wanted = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    for signature in headers.get("webhook-signature", "").split():
        version, _, value = signature.partition(",")
        if version == "v1" and hmac.compare_digest(base64.b64encode(wanted), value.encode(errors="replace")):
            return json.loads(body)
    return None


names = ("webhook-id", "webhook-timestamp", "webhook-signature")
headers = {name: os.environ.get("HTTP_" + name.upper().replace("-", "_"), "") for name in names}
event = verified(sys.stdin.buffer.read(), headers, os.environ["WEBHOOK_SECRET"])
print("Status: 204\n" if event else "Status: 400\n")
if event:
    print(event["event"], event["uuid"], file=sys.stderr)
