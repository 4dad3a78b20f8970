# nacre: language policy.function
# policy: strict
# input: eval
import builtins
name = input()
[getattr(builtins, n) for n in dir(builtins) if n == name][0]('1')
