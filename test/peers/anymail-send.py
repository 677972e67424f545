"""Sends with one of django-anymail's backends. Standard input: JSON with backend, settings and message. Prints the statuses as JSON."""
import json
import sys

from django.conf import settings

asked = json.load(sys.stdin)
settings.configure(
    EMAIL_BACKEND="anymail.backends.%s.EmailBackend" % asked["backend"],
    INSTALLED_APPS=["anymail"],
    ANYMAIL=asked["settings"],
)
import django
from anymail.exceptions import AnymailAPIError
from anymail.message import AnymailMessage

django.setup()
fields = asked["message"]
message = AnymailMessage(
    subject=fields["subject"],
    body=fields["text"],
    from_email=fields["from"],
    to=fields["to"],
    reply_to=["Help <help@simulator.test>", "desk@simulator.test"][: fields.get("reply_to_count", 2)],
    tags=fields.get("tags", []),
    metadata=fields.get("metadata", {}),
)
for name in ("merge_data", "merge_metadata", "merge_global_data"):
    if name in fields:
        setattr(message, name, fields[name])
message.attach_alternative("<p>%s</p>" % fields["text"], "text/html")
message.attach("Rechnung \N{LATIN SMALL LETTER U WITH DIAERESIS}.txt", "a note", "text/plain")
try:
    message.send()
    status = message.anymail_status
    print(json.dumps({"status": sorted(status.status), "id": sorted(status.message_id) if isinstance(status.message_id, set) else status.message_id}))
except AnymailAPIError as error:
    print(json.dumps({"code": error.status_code, "error": str(error)}))
