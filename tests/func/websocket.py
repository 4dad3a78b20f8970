"""A WebSocket client of the tests' own, which can also speak wrongly."""

import base64
import hashlib
import json
import os
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def frame(kind, data=b"", fin=True, mask=b"\x01\x02\x03\x04", reserved=0, length=None):
    size = len(data) if length is None else length
    head = bytes([(0x80 if fin else 0) | reserved << 4 | kind])
    bit = 0x80 if mask else 0
    head += bytes([bit | size]) if size < 126 else bytes([bit | 126]) + struct.pack(">H", size) if size < 65536 else bytes([bit | 127]) + struct.pack(">Q", size)
    return head + (mask + masked(data, mask) if mask else data)


def masked(data, mask):
    """As one large number: byte by byte takes too long here."""
    key = (mask * (len(data) // 4 + 1))[:len(data)]
    return (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(len(data), "big")


class WebSocket:
    """Connects at once; `status` is that of the answer, 101 if it is one."""

    def __init__(self, daemon, path, key=None, headers=None, extra=b"", timeout=30, client=None):
        self.client = client or daemon.connect(timeout)
        nonce = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{daemon.port}"]
        fields = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": nonce,
                  **({"Authorization": f"Bearer {key}"} if key else {}), **(headers or {})}
        lines += [f"{name}: {value}" for name, value in fields.items() if value is not None]
        self.client.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + extra)
        self.data = b""
        while b"\r\n\r\n" not in self.data:
            piece = self.client.recv(65536)
            if not piece:
                break
            self.data += piece
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        self.head = head.decode()
        self.status = int(self.head.split()[1])
        if self.status == 101:
            accept = base64.b64encode(hashlib.sha1(nonce.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
            assert f"Sec-WebSocket-Accept: {accept}" in self.head

    def send(self, kind, data=b"", **options):
        self.client.sendall(frame(kind, data, **options))

    def tell(self, **value):
        self.send(TEXT, json.dumps(value).encode())

    def input(self, data):
        self.send(BINARY, b"\0" + data)

    def need(self, n):
        pieces, have = [self.data], len(self.data)
        while have < n:
            pieces.append(self.client.recv(1 << 16))
            have += len(pieces[-1])
            if not pieces[-1]:
                raise EOFError
        data = b"".join(pieces)
        out, self.data = data[:n], data[n:]
        return out

    def receive(self):
        """(kind, data) of the next message; servers send each as one frame."""
        first, second = self.need(2)
        assert first & 0xf0 == 0x80 and not second & 0x80
        size = second & 0x7f
        if size >= 126:
            size, = struct.unpack(">H" if size == 126 else ">Q", self.need(2 if size == 126 else 8))
        return first & 15, self.need(size)

    def message(self):
        """The next text as a value."""
        kind, data = self.receive()
        assert kind == TEXT, (kind, data)
        return json.loads(data)

    def until_exit(self):
        """All that is printed, and the exit; the close is answered."""
        streams, end = {1: [], 2: []}, None
        while True:
            kind, data = self.receive()
            if kind == BINARY:
                streams[data[0]].append(data[1:])
            elif kind == TEXT:
                end = json.loads(data)
            elif kind == CLOSE:
                self.code = struct.unpack(">H", data[:2])[0] if data else None
                self.send(CLOSE, data[:2])
                self.client.close()
                return b"".join(streams[1]), b"".join(streams[2]), end

    def close_code(self):
        """How the server ends it."""
        while True:
            kind, data = self.receive()
            if kind == CLOSE:
                return struct.unpack(">H", data[:2])[0] if data else None
