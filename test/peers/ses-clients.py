"""Calls the API of SES with boto3, versions 2 and 1, and sends with django-anymail: URL, access key id, secret. Prints the answers as JSON."""
import json
import sys

import boto3
from botocore import xform_name
from botocore.exceptions import ClientError

url, access_key_id, secret = sys.argv[1:]
options = {"endpoint_url": url, "region_name": "eu-west-1", "aws_access_key_id": access_key_id, "aws_secret_access_key": secret}
sesv2, ses = boto3.client("sesv2", **options), boto3.client("ses", **options)
calls = []
for client in (sesv2, ses):
    client.meta.events.register("after-call", lambda model, http_response, **_: note(model, http_response.status_code))
sender = "Shop <shop@simulator.test>"
raw = b"From: shop@simulator.test\r\nTo: raw@simulator.test\r\nSubject: Raw\r\n\r\nHi\r\n"
content = {"Subject": {"Data": "Gr\u00fc\u00dfe & +"}, "Body": {"Html": {"Data": "<p>Hi</p>"}, "Text": {"Data": "Hi"}}}
message = {"Destination": {"ToAddresses": ["bob@simulator.test"]}, "ReplyToAddresses": ["Help <help@simulator.test>"]}
answers = {}


def note(model, status):
    method = model.service_model.service_name + "." + xform_name(model.name)
    calls.append([method, "answered" if status < 300 else "refused"])


def refusal(call):
    try:
        call()
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        return [type(error).__name__, error.response["Error"]["Code"], status]


answers["v2"] = sesv2.send_email(FromEmailAddress=sender, Content={"Simple": content}, **message)["MessageId"]
answers["raw2"] = sesv2.send_email(Content={"Raw": {"Data": raw}})["MessageId"]
answers["v1"] = ses.send_email(Source=sender, Message=content, **message)["MessageId"]
answers["raw1"] = ses.send_raw_email(RawMessage={"Data": raw + b"x" * 900_000})["MessageId"]
answers["account"] = sesv2.get_account()["SendQuota"]["MaxSendRate"]
answers["enabled"] = ses.get_account_sending_enabled()["Enabled"]
answers["quota"] = ses.get_send_quota()["SentLast24Hours"]
answers["identities"] = [ses.list_identities()["Identities"], [one["IdentityName"] for one in sesv2.list_email_identities()["EmailIdentities"]]]
answers["verified"] = [
    ses.get_identity_verification_attributes(Identities=["simulator.test"])["VerificationAttributes"]["simulator.test"]["VerificationStatus"],
    sesv2.get_email_identity(EmailIdentity="simulator.test")["VerifiedForSendingStatus"],
]
address = "gone+a%c@simulator.test"
sesv2.put_suppressed_destination(EmailAddress=address, Reason="COMPLAINT")
answers["suppressed"] = sesv2.get_suppressed_destination(EmailAddress=address)["SuppressedDestination"]["Reason"]
answers["listed"] = [one["EmailAddress"] for one in sesv2.list_suppressed_destinations(Reasons=["COMPLAINT"])["SuppressedDestinationSummaries"]]
sesv2.delete_suppressed_destination(EmailAddress=address)
answers["refused"] = [
    refusal(lambda: sesv2.get_suppressed_destination(EmailAddress=address)),
    refusal(lambda: sesv2.send_email(FromEmailAddress="a@elsewhere.test", Content={"Simple": content}, **message)),
    refusal(lambda: ses.send_email(Source="a@elsewhere.test", Message=content, **message)),
    refusal(lambda: ses.verify_email_identity(EmailAddress="a@elsewhere.test")),
    refusal(lambda: boto3.client("ses", **{**options, "aws_secret_access_key": "wrong"}).get_send_quota()),
]
wrong_options = {**options, "aws_secret_access_key": "wrong"}
wrong = {version: boto3.client(version, **wrong_options) for version in ("sesv2", "ses")}
for client in wrong.values():
    client.meta.events.register("after-call", lambda model, http_response, **_: note(model, http_response.status_code))
served = [
    ("sesv2", "send_email", {"Content": {"Raw": {"Data": raw}}}),
    ("sesv2", "put_suppressed_destination", {"EmailAddress": address, "Reason": "BOUNCE"}),
    ("sesv2", "get_suppressed_destination", {"EmailAddress": address}),
    ("sesv2", "delete_suppressed_destination", {"EmailAddress": address}),
    ("sesv2", "list_suppressed_destinations", {}),
    ("sesv2", "list_email_identities", {}),
    ("sesv2", "get_email_identity", {"EmailIdentity": "simulator.test"}),
    ("sesv2", "get_account", {}),
    ("ses", "send_email", {"Source": sender, "Message": content, **message}),
    ("ses", "send_raw_email", {"RawMessage": {"Data": raw}}),
    ("ses", "get_send_quota", {}),
    ("ses", "get_account_sending_enabled", {}),
    ("ses", "list_identities", {}),
    ("ses", "get_identity_verification_attributes", {"Identities": ["simulator.test"]}),
]
answers["wrong"] = [[version, refusal(lambda: getattr(wrong[version], name)(**asked))] for version, name, asked in served]
answers["calls"] = calls

from django.conf import settings

backend = "anymail.backends.amazon_ses.EmailBackend"
settings.configure(EMAIL_BACKEND=backend, INSTALLED_APPS=["anymail"], ANYMAIL={"AMAZON_SES_CLIENT_PARAMS": options})
import django
from anymail.exceptions import AnymailAPIError
from django.core.mail import EmailMultiAlternatives

django.setup()
mail = EmailMultiAlternatives("From anymail", "Text", sender, ["eve@simulator.test"], reply_to=["Help <help@simulator.test>"])
mail.attach_alternative("<p>Text</p>", "text/html")
mail.attach("note.txt", "a note", "text/plain")
mail.esp_extra = {"ConfigurationSetName": "orders", "Tags": [{"Name": "kind", "Value": "anymail"}]}
mail.send()
answers["anymail"] = mail.anymail_status.message_id
try:
    EmailMultiAlternatives("From anymail", "Text", "a@elsewhere.test", ["eve@simulator.test"]).send()
except AnymailAPIError as error:
    answers["anymail_refused"] = str(error)
print(json.dumps(answers))
