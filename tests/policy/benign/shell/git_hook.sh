# nacre: allowed low
changed=$(git diff --cached --name-only -- '*.c' '*.h')
[ -z "$changed" ] && exit 0
echo "$changed" | xargs clang-format --dry-run -Werror
