# nacre: language policy.import
# policy: strict
# input: posix
import importlib
m = importlib.import_module(input())
m.system('id')
