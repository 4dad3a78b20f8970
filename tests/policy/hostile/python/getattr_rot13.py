# nacre: found code.hidden-name process.shell
import codecs
import os
getattr(os, codecs.decode("flfgrz", "rot13"))("id")
