# nacre: allowed low
pids=()
for host in alpha beta gamma; do
    (sleep 1; echo "$host done") &
    pids+=($!)
done
for pid in "${pids[@]}"; do
    wait "$pid" || exit 1
done
