"""Sends one message with django-anymail's backend for Postal: URL, key, sender, recipient. Prints the id and the status as JSON."""
import json
import sys

from django.conf import settings

url, key, sender, recipient = sys.argv[1:]
settings.configure(
    EMAIL_BACKEND="anymail.backends.postal.EmailBackend",
    INSTALLED_APPS=["anymail"],
    ANYMAIL={"POSTAL_API_URL": url, "POSTAL_API_KEY": key},
)
import django
from django.core.mail import EmailMultiAlternatives

django.setup()
message = EmailMultiAlternatives("From anymail", "Text", sender, [recipient], reply_to=["Help <help@shop2.example>"])
message.attach_alternative("<p>Text</p>", "text/html")
message.attach("note.txt", "a note", "text/plain")
message.tags = ["anymail"]
message.send()
status = message.anymail_status
print(json.dumps({"status": list(status.status), "id": status.message_id}))
