# nacre: found process.run-unknown
$1 --do-it
