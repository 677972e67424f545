"""Verifies ARC chains with dkimpy, and seals a message with it: prints the status of each message, and the sealed one."""
import base64, json, sys
import dkim

with open(sys.argv[1]) as file:
    given = json.load(file)


def find_txt(name, timeout=5):
    found = given['txt'].get((name.decode() if isinstance(name, bytes) else name).rstrip('.').lower())
    return found.encode() if found else None


# None: a chain that has ended.
statuses = [(dkim.arc_verify(base64.b64decode(raw), dnsfunc=find_txt)[0] or b'ended').decode() for raw in given['verify']]
seal = given['seal']
raw = base64.b64decode(seal['raw'])
# dkimpy takes the results from a field of its own server.
marked = b'Authentication-Results: list.test; spf=pass smtp.mailfrom=example.net\r\n' + raw
fields = dkim.arc_sign(marked, b's', b'list.test', seal['key'].encode(), b'list.test', include_headers=[b'from', b'subject'])
json.dump({'statuses': statuses, 'sealed': base64.b64encode(b''.join(fields) + raw).decode()}, sys.stdout)
