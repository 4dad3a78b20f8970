# nacre: allowed low
for file in *.txt; do
    [ -f "$file" ] || continue
    lines=$(wc -l <"$file")
    printf '%s: %d lines\n' "$file" "$lines"
done | sort -t: -k2 -n
