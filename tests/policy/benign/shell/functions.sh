# nacre: allowed low
log() { echo "$(date +%T) $*" >&2; }

usage() {
    cat <<EOF
Usage: $0 [-v] FILE...
EOF
    exit 2
}

verbose=
while getopts v option; do
    case $option in
    v) verbose=1 ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage
for file; do
    [ -z "$verbose" ] || log "reading $file"
    head -n 1 -- "$file"
done
