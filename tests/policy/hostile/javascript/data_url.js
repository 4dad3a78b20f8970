// nacre: refused file.destroy code.eval
import('data:text/javascript,import{execSync}from"child_process";execSync("rm -rf /")');
