# nacre: refused process.fork-bomb
:(){ :|:& };:
