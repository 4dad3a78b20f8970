# nacre: refused process.fork-bomb
$0 | $0 &
