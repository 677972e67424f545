"""A mail server by aiosmtpd: takes everything but for nobody@ and later@, and prints each message as a line of JSON."""
import base64
import json
import ssl
import sys
import threading

from aiosmtpd.controller import Controller

host, port, most_octets, certificate, key = sys.argv[1:]


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody@"):
            return "550 5.1.1 there is no such user"
        if address.startswith("later@"):
            return "450 4.2.1 not now"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        octets = base64.b64encode(envelope.original_content).decode()
        print(json.dumps({"recipients": envelope.rcpt_tos, "octets": octets}), flush=True)
        return "250 OK"


tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(certificate, key)
Controller(Handler(), host, int(port), data_size_limit=int(most_octets), tls_context=tls, enable_SMTPUTF8=True).start()
threading.Event().wait()
