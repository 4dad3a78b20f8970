# nacre: allowed low
"""Decodes data, not code."""
import base64

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

with open("pixel.png", "wb") as out:
    out.write(base64.b64decode(PIXEL))
print(len(bytes.fromhex(DIGEST)))
