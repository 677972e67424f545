"""Reads From fields, one JSON string per line, and writes one line of JSON for each: the addresses that Python's readers find, by reader."""
import inspect
import json
import sys
from email import message_from_string, policy
from email.headerregistry import HeaderRegistry
from email.utils import getaddresses, parseaddr

registry = HeaderRegistry()
lenient = [{"strict": False}] if "strict" in inspect.signature(parseaddr).parameters else []


def addresses_of(field):
    unfolded = field.replace("\r\n ", " ").replace("\r\n\t", "\t")
    found = {}
    for options in [{}] + lenient:
        mode = "lenient " if options else ""
        found[mode + "parseaddr"] = [parseaddr(unfolded, **options)[1]]
        found[mode + "getaddresses"] = [address for _, address in getaddresses([unfolded], **options)]
        found[mode + "getaddresses of the folded field"] = [address for _, address in getaddresses([field], **options)]
    for name, read in readers.items():
        try:
            found[name] = read(unfolded, field)
        except Exception as error:  # A reader that fails finds no address.
            found[name] = []
    return {name: [one for one in some if "@" in one] for name, some in found.items()}


readers = {
    "headerregistry": lambda unfolded, _: [one.addr_spec for one in registry("From", unfolded).addresses],
    "message": lambda _, field: [
        one.addr_spec for one in message_from_string("From: " + field + "\r\n\r\n", policy=policy.SMTP)["from"].addresses
    ],
}

for line in sys.stdin:
    print(json.dumps(addresses_of(json.loads(line))))
