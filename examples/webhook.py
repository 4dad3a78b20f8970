#!/usr/bin/env python3
"""Takes webhooks of nacre serve and verifies their signature: webhook.py KEY-FILE PORT"""

import hashlib
import hmac
import http.server
import json
import pathlib
import sys

key = bytes.fromhex(pathlib.Path(sys.argv[1]).read_text())  # 64 hex digits are 32 bytes


def is_signed(body, signature):
    expected = "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode())


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))  # the bytes as they came
        if not is_signed(body, self.headers.get("X-Nacre-Signature", "")):
            self.send_error(403)
            return
        alert = json.loads(body)
        print(alert["alert"], alert["state"], alert["value"], flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Receiver).serve_forever()
