# nacre: allowed low
set -- "$HOME" "${1:-}"
for word in "$@"; do
	awk -F: '{ total += $3 } END { print total, system_name }' system_name="$word" /etc/hostname
done
git -c color.ui=false log --oneline | head -3
tar --exclude=.git -czf /tmp/out.tgz .
watch -n 5 -t date
EMPTY=
rm -rf "/tmp/work/$EMPTY"
timeout --preserve-status 5 ls | sort
IFS=: read -r a b <<< "x:y"
echo "$a" "$b" $(printf '%s' "$word")
