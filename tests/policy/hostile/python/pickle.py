# nacre: found code.deserialise
import pickle
import sys
pickle.loads(sys.stdin.buffer.read())
