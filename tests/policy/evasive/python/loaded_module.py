# nacre: language policy.import
# policy: strict
# input: os
import importlib
m = importlib.import_module(input())
print(m.listdir('/'))
