// nacre: found native.unsafe native.call
extern "C" {
    fn system(command: *const u8) -> i32;
}

fn main() {
    unsafe { system(b"id\0".as_ptr()) };
}
