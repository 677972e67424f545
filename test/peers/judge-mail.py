"""Judges messages with Python's own programs, dkimpy, pyspf and authheaders: prints the results of SPF, DKIM and DMARC for each."""
import base64, functools, json, sys
import authheaders, authheaders.dmarc_lookup, dkim, spf
from authheaders import check_dmarc, check_spf
from authres import DKIMAuthenticationResult

with open(sys.argv[1]) as file:
    given = json.load(file)
records = given['txt']


def texts(name):
    return records.get(name.decode().rstrip('.').lower() if isinstance(name, bytes) else name.rstrip('.').lower(), [])


def find_txt(name, timeout=5):
    found = texts(name)
    return found[0].encode() if found else None


def find_policy(name, timeout=5):
    found = texts(name)
    return found[0] if found else None


def find_for_spf(name, kind, strict=True, timeout=5):
    if kind != 'TXT':
        return []
    return [((name, 'TXT'), [text.encode()]) for text in texts(name)]


spf.DNSLookup = find_for_spf
# Each call reads the list of public suffixes.
authheaders.get_org_domain = authheaders.dmarc_lookup.get_org_domain = functools.cache(authheaders.get_org_domain)
judged = []
for one in given['samples']:
    message = base64.b64decode(one['raw'])
    # RFC 7208 section 2.4, for the null reverse-path.
    sender = one['sender'] or 'postmaster@' + one['greeting']
    facts = (one['client'], sender, one['greeting'])
    by_spf = check_spf(*facts)
    signatures = []
    count = message.lower().count(b'dkim-signature:')
    for nth in range(count):
        reader = dkim.DKIM(message)
        try:
            result = 'pass' if reader.verify(idx=nth, dnsfunc=find_txt) else 'fail'
        except dkim.DKIMException:
            result = 'fail'
        domain = reader.signature_fields.get(b'd', b'').decode()
        signatures.append(DKIMAuthenticationResult(result=result, header_d=domain, header_i='@' + domain))
    attempts = signatures or [DKIMAuthenticationResult(result='none', header_d='', header_i='')]
    # check_dmarc changes the result that it is given.
    by_dmarc = [check_dmarc(message, check_spf(*facts), signature, dnsfunc=find_policy).result for signature in attempts]
    judged.append({
        'spf': by_spf.result,
        'dkim': [signature.result for signature in signatures],
        'dmarc': 'pass' if 'pass' in by_dmarc else by_dmarc[0],
    })
json.dump(judged, sys.stdout)
