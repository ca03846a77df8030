//! `slowpath record --audit-stacks`: what is recorded is what another library finds.

use crate::running::*;
use slowpath_recording::Recording;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Imports modules of C code, recurses, and touches memory, for as many seconds of CPU time as its argument says: on a busy machine tables
/// come later, and so does its end.
const PYTHON: &str = "
import asyncio, decimal, json, sys, time, xml.etree.ElementTree as tree
def deep(n):
    return bytearray(40960) if n == 0 else deep(n - 1)
until = time.process_time() + float(sys.argv[1])
while time.process_time() < until:
    asyncio.run(asyncio.sleep(0))
    tree.fromstring('<r>' + '<a b=\"c\">t</a>' * 300 + '</r>')
    json.loads(json.dumps({'a': [decimal.Decimal(n) / 7 for n in range(99)].__len__()}))
    [deep(n) for n in range(20)]
";

/// Sorts with a callback that touches fresh memory, and takes a signal on another stack.
const C: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
static volatile long sink;
static void touch(void) {
    char *fresh = mmap(0, 16 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 16; i++) fresh[i << 12] = 1;
    munmap(fresh, 16 << 12);
}
static int compare(const void *a, const void *b) {
    if (!(sink++ & 15)) touch();
    return *(const int *)a - *(const int *)b;
}
__attribute__((noinline)) static long recursive(int n) {
    volatile char room[200];
    memset((char *)room, n, sizeof room);
    if (n == 0) touch();
    return n == 0 ? room[3] : recursive(n - 1) + room[7];
}
static void handler(int number) { sink += recursive(number); }
int main(int count, char **words) {
    static int values[500];
    static char other_stack[65536];
    stack_t other = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    struct timespec now, end;
    sigaltstack(&other, 0);
    sigaction(SIGUSR1, &action, 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    end.tv_sec += atoi(words[1]);
    do {
        for (int i = 0; i < 500; i++) values[i] = rand();
        qsort(values, 500, sizeof values[0], compare);
        sink += recursive(20);
        raise(SIGUSR1);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec < end.tv_sec);
    return count == 0;
}
"#;

fn audited(directory: &Path, target: &[&str]) -> (BTreeMap<String, u64>, String) {
    let done = record(directory, &["--audit-stacks=3", "--stacks", "fault", "--sample", "499"], target);
    done.succeeds();
    let counters = Recording::open(directory).unwrap().manifest().counters.clone();
    (counters, done.stderr)
}

#[track_caller]
fn check((counters, said): (BTreeMap<String, u64>, String)) {
    let count = |word: &str| counters[&format!("stack_audit.{word}")];
    let compared = count("same") + count("truncated") + count("wrong");
    assert!(compared > 200, "{counters:?}");
    // One in five hundred at most.
    assert!(count("wrong") * 500 <= compared, "{counters:?}");
    assert!(count("truncated") * 10 <= compared, "{counters:?}");
    assert!(count("unknown") * 3 <= compared, "{counters:?}");
    assert_eq!(counters["unreadable_bytes"], 0);
    assert!(counters["stack_ends.whole"] >= compared, "{counters:?}");
    assert!(said.contains(&format!("stack audit: {compared} stacks compared with full unwinding: ")), "{said}");
}

#[test]
fn recorded_stacks_are_those_that_full_unwinding_finds() {
    if !root() {
        return;
    }
    let place = place();
    check(audited(&place.path().join("python"), &["/usr/bin/python3", "-c", PYTHON, "3"]));

    let (source, program) = (place.path().join("program.c"), place.path().join("program"));
    std::fs::write(&source, C).unwrap();
    let compiled = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(&source).status().unwrap();
    assert!(compiled.success());
    check(audited(&place.path().join("c"), &[program.to_str().unwrap(), "3"]));
}

#[test]
fn without_stacks_there_is_nothing_to_audit() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    record(&out, &["--audit-stacks"], &["/bin/true"]).fails_with(2, &["--audit-stacks", "--sample"]);
    record(&out, &["--sample", "99"], &["/bin/true"]).succeeds();
    let counters = Recording::open(&out).unwrap().manifest().counters.clone();
    assert!(counters.keys().all(|name| !name.starts_with("stack_")), "{counters:?}");
}
