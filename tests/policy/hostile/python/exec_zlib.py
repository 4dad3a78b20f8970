# nacre: found code.eval-decoded
import base64
import zlib
exec(zlib.decompress(base64.b64decode("eJzLSM3JyQcABiwCFQ==")))
