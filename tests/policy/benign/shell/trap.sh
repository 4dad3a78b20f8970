# nacre: allowed low
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r src "$work/"
(cd "$work" && make test)
