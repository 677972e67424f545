"""
Serves django-anymail's webhook views: port, signing key of Mailgun. Prints "ready", then each event that a view accepts as a line of JSON.

Amazon's SNS stands between SES and a receiver. `/ses/` does its part: it puts each event into the envelope in which SNS delivers it.
"""
import io
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
from anymail.webhooks.amazon_ses import AmazonSESTrackingWebhookView
from anymail.webhooks.mailgun import MailgunTrackingWebhookView
from anymail.webhooks.postmark import PostmarkTrackingWebhookView
from anymail.webhooks.sendgrid import SendGridTrackingWebhookView
from django.core.wsgi import get_wsgi_application
from django.urls import path

urlpatterns = [
    path("mailgun/", MailgunTrackingWebhookView.as_view()),
    path("postmark/", PostmarkTrackingWebhookView.as_view()),
    path("sendgrid/", SendGridTrackingWebhookView.as_view()),
    path("ses/", AmazonSESTrackingWebhookView.as_view()),
]


def show(sender, event, esp_name, **others):
    names = ("event_type", "message_id", "recipient", "reject_reason", "description", "mta_response", "tags", "metadata", "click_url", "event_id")
    flags = event.esp_event.get("event-data", {}).get("flags", {})
    print(json.dumps({"esp": esp_name, **{name: getattr(event, name) for name in names}, "test": flags.get("is-test-mode")}), flush=True)


tracking.connect(show)
application = get_wsgi_application()


def as_sns(environ, start_response):
    if environ["PATH_INFO"] == "/ses/":
        event = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode()
        envelope = {
            "Type": "Notification",
            "MessageId": environ.get("HTTP_WEBHOOK_ID", "1"),
            "TopicArn": "arn:aws:sns:eu-central-1:1:events",
            "Timestamp": "2026-01-01T00:00:00.000Z",
            "Message": event,
        }
        body = json.dumps(envelope).encode()
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        environ["HTTP_X_AMZ_SNS_MESSAGE_TYPE"] = envelope["Type"]
        environ["HTTP_X_AMZ_SNS_MESSAGE_ID"] = envelope["MessageId"]
    return application(environ, start_response)


class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments):
        pass


server = make_server("127.0.0.1", int(port), as_sns, handler_class=Quiet)
print("ready", flush=True)
server.serve_forever()
