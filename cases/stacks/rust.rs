//! Rust: closures, generics, trait objects, panics that are caught, work in `drop` on their way.

mod shadow;

use shadow::{Active, touch};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

#[inline(never)]
fn truth_leaf() {
    let _active = Active::new(c"truth_leaf");
    touch();
}

struct Cleans;

impl Drop for Cleans {
    #[inline(never)]
    fn drop(&mut self) {
        truth_cleans();
    }
}

#[inline(never)]
fn truth_cleans() {
    let _active = Active::new(c"truth_cleans");
    touch();
    truth_leaf();
}

#[inline(never)]
fn truth_panics(kind: u32) {
    let _active = Active::new(c"truth_panics");
    touch();
    match kind % 3 {
        0 => panic_any(kind),
        1 => panic!("kind {kind}"),
        _ => drop(std::hint::black_box(&[1, 2, 3][..])[std::hint::black_box(kind as usize + 7)]),
    }
}

#[inline(never)]
fn truth_through(depth: u32, kind: u32) -> u32 {
    let _active = Active::new(c"truth_through");
    let _cleans = Cleans;
    if depth == 0 {
        truth_panics(kind);
    } else {
        truth_through(depth - 1, kind);
    }
    touch();
    depth
}

#[inline(never)]
fn truth_catches(kind: u32) {
    let _active = Active::new(c"truth_catches");
    let caught = catch_unwind(AssertUnwindSafe(
        #[inline(never)]
        || {
            let _active = Active::new(c"truth_catches{closure}");
            touch();
            truth_through(3, kind)
        },
    ));
    assert!(caught.is_err());
    touch();
    truth_leaf();
}

#[inline(never)]
fn truth_generic<T: Copy, F: Fn(T) -> T>(value: T, function: F) -> T {
    let _active = Active::new(c"truth_generic");
    touch();
    let result = function(value);
    touch();
    result
}

#[inline(never)]
fn truth_boxed(function: &dyn Fn(u64) -> u64) -> u64 {
    let _active = Active::new(c"truth_boxed");
    let result = function(4);
    touch();
    result
}

#[inline(never)]
fn truth_closures(base: u64) -> u64 {
    let _active = Active::new(c"truth_closures");
    let add = std::convert::identity(
        #[inline(never)]
        move |value: u64| {
            let _active = Active::new(c"truth_closures{closure}");
            touch();
            truth_leaf();
            value + base
        },
    );
    let sum: u64 = (0..4u64).map(add).sum();
    let boxed: Box<dyn Fn(u64) -> u64> = Box::new(add);
    let floating = truth_generic(
        1.5f64,
        #[inline(never)]
        |value| {
            let _active = Active::new(c"truth_closures{closure}");
            touch();
            value * 2.0
        },
    );
    sum + truth_generic(base, add) + truth_boxed(&*boxed) + floating as u64
}

trait Shape {
    fn truth_area(&self, depth: u32) -> u32;
}

struct Circle;
struct Square(Box<dyn Shape>);

impl Shape for Circle {
    #[inline(never)]
    fn truth_area(&self, depth: u32) -> u32 {
        let _active = Active::new(c"truth_area");
        touch();
        depth
    }
}

impl Shape for Square {
    #[inline(never)]
    fn truth_area(&self, depth: u32) -> u32 {
        let _active = Active::new(c"truth_area");
        let area = self.0.truth_area(depth + 1);
        touch();
        area
    }
}

#[inline(never)]
fn truth_sorts() {
    let _active = Active::new(c"truth_sorts");
    let mut words = ["delta", "alpha", "charlie", "echo", "bravo"].map(String::from);
    words.sort_by(
        #[inline(never)]
        |one, two| {
            let _active = Active::new(c"truth_sorts{closure}");
            touch();
            one.cmp(two)
        },
    );
    touch();
}

#[inline(never)]
fn truth_hook() {
    let _active = Active::new(c"truth_hook");
    touch();
    truth_leaf();
}

#[inline(never)]
fn truth_thread() {
    let _active = Active::new(c"truth_thread");
    for kind in 0..5 {
        truth_catches(kind);
    }
}

#[inline(never)]
fn truth_main() {
    let _active = Active::new(c"truth_main");
    let shape: Box<dyn Shape> = Box::new(Square(Box::new(Square(Box::new(Circle)))));
    for round in 0..20 {
        truth_catches(round);
        truth_closures(u64::from(round));
        shape.truth_area(round);
        truth_sorts();
    }
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(truth_thread)).collect();
    for thread in threads {
        thread.join().expect("it catches what it throws");
    }
}

fn main() {
    shadow::logged(|| {
        std::panic::set_hook(Box::new(|_| truth_hook()));
        truth_main();
    });
}
