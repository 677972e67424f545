"""Reads DMARC reports in mail files with Python's own email, zip, gzip and XML modules, and prints their figures by day, source and From."""
import email, email.policy, gzip, io, ipaddress, json, sys, zipfile, datetime
import xml.etree.ElementTree as tree

def local(element):
    return element.tag.split('}')[-1]

def child(element, path):
    for name in path.split('/'):
        element = next((one for one in element if local(one) == name), None) if element is not None else None
    return element

def text(element, path):
    found = child(element, path)
    return (found.text or '').strip() if found is not None else ''

def organisation(name):
    return '.'.join(name.split('.')[-2:])

def unpack(octets):
    if octets[:2] == b'\x1f\x8b':
        return gzip.decompress(octets)
    if octets[:2] == b'PK':
        archive = zipfile.ZipFile(io.BytesIO(octets))
        return archive.read(archive.namelist()[0])
    return octets

figures = {}
for path in sys.stdin.read().split():
    with open(path, 'rb') as file:
        message = email.message_from_binary_file(file, policy=email.policy.default)
    attachment = next(message.iter_attachments())
    content = attachment.get_payload(decode=True)
    root = tree.fromstring(unpack(content))
    policy = child(root, 'policy_published')
    begin = int(text(root, 'report_metadata/date_range/begin'))
    day = datetime.datetime.fromtimestamp(begin, datetime.timezone.utc).strftime('%Y-%m-%d')
    for record in (one for one in root if local(one) == 'record'):
        count = int(text(record, 'row/count'))
        source = str(ipaddress.ip_address(text(record, 'row/source_ip')))
        header_from = text(record, 'identifiers/header_from').lower()
        aligned = {}
        for kind in ('dkim', 'spf'):
            aligned[kind] = text(record, 'row/policy_evaluated/' + kind) == 'pass'
            if child(record, 'row/policy_evaluated/' + kind) is None:
                results = [one for one in child(record, 'auth_results') if local(one) == kind]
                aligned[kind] = any(text(one, 'result') == 'pass' and organisation(text(one, 'domain')) == organisation(header_from) for one in results)
        disposition = text(record, 'row/policy_evaluated/disposition')
        row = figures.setdefault(' '.join([day, source, header_from]), [0] * 6)
        for index, counts in enumerate([True, aligned['dkim'] or aligned['spf'], aligned['dkim'], aligned['spf'], disposition == 'quarantine', disposition == 'reject']):
            if counts:
                row[index] += count
print(json.dumps(figures))
