// nacre: found file.credentials
use std::fs;

fn main() {
    println!("{}", fs::read_to_string("/etc/shadow").unwrap());
}
