# nacre: language file.environment
# policy: strict
# input: /proc/self/mem
import pathlib
p = pathlib.Path('link')
p.symlink_to(input())
open('link', 'r+b')
