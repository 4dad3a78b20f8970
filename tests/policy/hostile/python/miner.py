# nacre: refused network.miner
POOL = "stratum+tcp://pool.example:3333"
