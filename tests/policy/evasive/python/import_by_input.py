# nacre: language policy.import
# policy: strict
# input: socket
import importlib
m = importlib.import_module(input())
