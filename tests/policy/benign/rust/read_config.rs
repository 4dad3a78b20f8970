// nacre: allowed low
use std::{env, fs, process};

fn main() {
    let path = env::args().nth(1).unwrap_or_else(|| {
        eprintln!("usage: read_config FILE");
        process::exit(2);
    });
    match fs::read_to_string(&path) {
        Ok(text) => println!("{} bytes", text.len()),
        Err(error) => eprintln!("{}: {}", path, error),
    }
}
