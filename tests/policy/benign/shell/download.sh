# nacre: allowed low
url=https://example.org/data.csv
curl -fsSL "$url" -o data.csv
echo "d2a84f4b8b650937ec8f73cd8be2c74add5a911ba64df27458ed8229da804a26  data.csv" | sha256sum --check
