// nacre: refused file.destroy
fn main() {
    let mut command = std::process::Command::new("rm");
    command.arg("-rf");
    command.arg("/");
    command.output().unwrap();
}
