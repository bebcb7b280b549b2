// Generics, traits, closures, constants as arguments, iterators that are inlined.
use std::collections::HashMap;
use std::fmt::Debug;

trait Shape {
    fn area(&self) -> f64;
}

struct Square(f64);
struct Grid<const W: usize, T>([T; W]);

impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

impl<const W: usize, T: Debug + Copy> Grid<W, T> {
    #[inline(never)]
    fn show<F: Fn(T) -> String>(&self, f: F) -> Vec<String> {
        self.0.iter().map(|x| f(*x)).collect()
    }
}

#[inline(never)]
fn total(shapes: &[Box<dyn Shape>]) -> f64 {
    shapes.iter().map(|s| s.area()).sum()
}

mod inner {
    #[inline(never)]
    pub extern "C" fn callback(f: fn(&str) -> usize, s: &str) -> usize {
        f(s)
    }
}

fn main() {
    let n = std::env::args().count();
    let shapes: Vec<Box<dyn Shape>> = (0..n).map(|i| Box::new(Square(i as f64)) as Box<dyn Shape>).collect();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for s in Grid::<3, u8>([1, 2, n as u8]).show(|x| format!("{:?}", x)) {
        *seen.entry(s).or_insert(0) += inner::callback(|s| s.len(), "text");
    }
    println!("{} {}", total(&shapes), seen.len());
}
