# nacre: found code.eval-decoded process.shell
import codecs
exec(codecs.decode("vzcbeg bf; bf.flfgrz('vq')", "rot_13"))
