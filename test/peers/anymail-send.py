"""Sends with django-anymail's backends. Standard input: a JSON array of {backend, settings, message}. Prints an array of their statuses."""
import json
import sys

from django.conf import settings

settings.configure(INSTALLED_APPS=["anymail"])
import django
from anymail.exceptions import AnymailAPIError
from anymail.message import AnymailMessage
from django.core.mail import get_connection

django.setup()


def send(backend, settings, message):
    mail = AnymailMessage(
        subject=message["subject"],
        body=message["text"],
        from_email=message["from"],
        to=message["to"],
        reply_to=["Help <help@simulator.test>"],
        tags=message.get("tags", []),
        metadata=message.get("metadata", {}),
        connection=get_connection("anymail.backends.%s.EmailBackend" % backend, **settings),
    )
    for name in ("merge_data", "merge_metadata", "merge_global_data"):
        if name in message:
            setattr(mail, name, message[name])
    mail.attach_alternative("<p>%s</p>" % message["text"], "text/html")
    mail.attach("Rechnung \N{LATIN SMALL LETTER U WITH DIAERESIS}.txt", "a note", "text/plain")
    try:
        mail.send()
    except AnymailAPIError as error:
        return {"code": error.status_code, "error": str(error)}
    return {"status": sorted(mail.anymail_status.status), "id": mail.anymail_status.message_id}


print(json.dumps([send(**asked) for asked in json.load(sys.stdin)]))
