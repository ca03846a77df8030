//! Temporary.
use slowpath_foreign_data::named;
use std::time::{Duration, Instant};
struct R(u64);
impl R {
    fn n(&mut self, m: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % m.max(1)
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t = named(&a[1]);
    let secs: u64 = a[2].parse().unwrap();
    let mut r = R(a[3].parse().unwrap());
    let seeds: Vec<Vec<u8>> = std::fs::read_dir(format!("fuzz/corpus/{}", a[1]))
        .unwrap()
        .map(|e| std::fs::read(e.unwrap().path()).unwrap())
        .collect();
    static LAST: std::sync::Mutex<String> = std::sync::Mutex::new(String::new());
    std::panic::set_hook(Box::new(|p| *LAST.lock().unwrap() = p.to_string()));
    let began = Instant::now();
    let mut n = 0u64;
    let mut found = std::collections::BTreeMap::<String, u64>::new();
    let ints: [&[u8]; 8] = [
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
        b"\0",
        b"\x01",
        b"\xff\xff\xff\xff\x0f",
        b"\x7f",
        b"18446744073709551615",
        b"9007199254740993",
    ];
    while began.elapsed() < Duration::from_secs(secs) {
        let mut b = seeds[r.n(seeds.len())].clone();
        for _ in 0..1 + r.n(6) {
            let l = b.len();
            let at = r.n(l + 1);
            match r.n(7) {
                0 if l > 0 => {
                    let at = at.min(l - 1);
                    b[at] ^= 1 << r.n(8);
                }
                1 if l > 0 => {
                    let at = at.min(l - 1);
                    b[at] = r.n(256) as u8;
                }
                2 => {
                    let x = ints[r.n(8)];
                    b.splice(at..at, x.iter().copied());
                }
                3 if l > 0 => {
                    let e = (at + 1 + r.n(16)).min(l);
                    b.drain(at.min(e)..e);
                }
                4 => {
                    let o = &seeds[r.n(seeds.len())];
                    let f = r.n(o.len() + 1);
                    let e = (f + r.n(200)).min(o.len());
                    b.splice(at..at, o[f..e].iter().copied());
                }
                5 => {
                    let e = (at + r.n(60)).min(l);
                    let p: Vec<u8> = b[at..e].to_vec();
                    b.splice(at..at, p);
                }
                _ => {
                    let x = ints[r.n(8)];
                    let e = (at + x.len()).min(l);
                    b.splice(at..e, x.iter().copied());
                }
            }
        }
        b.truncate(t.longest);
        std::fs::write(format!("/tmp/fz/current-{}", a[1]), &b).unwrap();
        let start = Instant::now();
        let ok = std::panic::catch_unwind(|| (t.run)(&b)).is_ok();
        n += 1;
        let slow = start.elapsed() > Duration::from_secs(3);
        if !ok || slow {
            let key = if ok { "slow".to_owned() } else { LAST.lock().unwrap().chars().take(300).collect() };
            let c = found.entry(key.clone()).or_default();
            *c += 1;
            if *c == 1 {
                let name = format!("/tmp/fz/found/{}-{}", a[1], found.len());
                std::fs::create_dir_all("/tmp/fz/found").unwrap();
                std::fs::write(&name, &b).unwrap();
                println!("{name}: {key} {:?}", start.elapsed());
            }
        }
    }
    println!("{}: {n} runs, {} findings", a[1], found.len());
}
