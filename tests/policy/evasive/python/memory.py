# nacre: language file.environment
# policy: strict
# input: /proc/self/mem
open(input(), 'r+b')
