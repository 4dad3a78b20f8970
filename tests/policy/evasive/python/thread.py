# nacre: language policy.import
# policy: strict
# input: posix
import importlib
import threading

name = input()
t = threading.Thread(target=lambda: importlib.import_module(name).system('id'))
t.start()
t.join()
