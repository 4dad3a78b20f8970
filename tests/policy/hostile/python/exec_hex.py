# nacre: found code.eval-decoded process.shell
import binascii
exec(binascii.unhexlify("696d706f7274206f733b6f732e73797374656d282769642729"))
