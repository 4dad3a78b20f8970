# nacre: found code.eval-decoded code.deserialise
import marshal
exec(marshal.loads(open("payload", "rb").read()))
