// nacre: found network.connect
use std::net::*;

fn main() {
    let _ = TcpStream::connect("10.0.0.1:4444");
}
