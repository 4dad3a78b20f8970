// nacre: refused file.destroy process.run
use std::process::Command;

fn main() {
    Command::new("rm").arg("-rf").arg("/").spawn().unwrap();
}
