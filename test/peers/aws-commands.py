"""Runs commands of the AWS command line in one process: a JSON array of argument lists. Prints [exit code, output, errors] of each as JSON."""
import contextlib
import io
import json
import sys

from awscli.clidriver import AWSCLIEntryPoint, create_clidriver

driver = create_clidriver()


def run(words):
    output, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = AWSCLIEntryPoint(driver).main(words)
    return [code, *(one.buffer.getvalue().decode() for one in (output, errors))]


print(json.dumps([run(words) for words in json.load(sys.stdin)]))
