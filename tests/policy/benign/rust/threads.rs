// nacre: allowed low
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let total = Arc::new(Mutex::new(0));
    let handles: Vec<_> = (0..4)
        .map(|n| {
            let total = Arc::clone(&total);
            thread::spawn(move || *total.lock().unwrap() += n)
        })
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
    println!("{}", total.lock().unwrap());
}
