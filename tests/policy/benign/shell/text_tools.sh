# nacre: allowed low
grep -rn "TODO" src | awk -F: '{ count[$1]++ } END { for (f in count) print count[f], f }' | sort -rn | head
sed -e 's/foo/bar/g' input.txt | tr 'a-z' 'A-Z' | cut -c1-80 >output.txt
tar -czf backup.tar.gz src && sha256sum backup.tar.gz >backup.sha256
