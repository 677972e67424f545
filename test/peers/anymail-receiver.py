"""Serves django-anymail's webhook view for Mailgun: port, signing key. Prints "ready", then each event that it accepts as a line of JSON."""
import json
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

from django.conf import settings

port, key = sys.argv[1:]
settings.configure(
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="only for this test",
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["anymail"],
    ANYMAIL={"MAILGUN_WEBHOOK_SIGNING_KEY": key},
)
import django

django.setup()
from anymail.signals import tracking
from anymail.webhooks.mailgun import MailgunTrackingWebhookView
from django.core.wsgi import get_wsgi_application
from django.urls import path

urlpatterns = [path("mailgun/", MailgunTrackingWebhookView.as_view())]


def show(sender, event, esp_name, **others):
    names = ("event_type", "message_id", "recipient", "reject_reason", "description", "mta_response", "tags", "metadata", "click_url", "event_id")
    flags = event.esp_event["event-data"]["flags"]
    print(json.dumps({**{name: getattr(event, name) for name in names}, "test": flags["is-test-mode"]}), flush=True)


tracking.connect(show)


class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments):
        pass


server = make_server("127.0.0.1", int(port), get_wsgi_application(), handler_class=Quiet)
print("ready", flush=True)
server.serve_forever()
