# nacre: allowed low
set -euo pipefail

root=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-$root/build}
mkdir -p "$build"
cmake -S "$root" -B "$build" >/dev/null
make -C "$build" -j"$(nproc)" 2>&1 | tee "$build/build.log"
