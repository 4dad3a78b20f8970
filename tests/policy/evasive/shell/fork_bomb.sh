# nacre: kernel pids
# policy: standard
# input: f() { f | f & }; f
read -r x
eval "$x"
sleep 1
