# nacre: allowed low
# data, not code
echo "aGVsbG8gd29ybGQ=" | base64 -d >greeting.txt
cat greeting.txt
