# nacre: allowed low
# removes what was built, and nothing else
rm -rf build dist
rm -f ./*.log
find . -name '__pycache__' -type d -exec rm -rf {} +
