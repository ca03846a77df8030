// Every probe, in the order in which they are loaded: the first is the one that the others hang on. `build.rs` and `probes.rs` read
// this list. A probe is a folder with its program, `<probe>.bpf.c`, and its declaration, `PROBE` in `mod.rs`; behind a colon stands how
// the program is compiled:
//
// - `stacks`: also a second time, with the call stack of each event;
// - `counts`: for the instruction set of version 3 (kernel 5.12), whose addition returns what was there before. Not for all: the
//   verifier follows the loops of others only in the code that clang makes for version 1.
each_probe! {
    process,
    fault: stacks,
    mapping,
    page_cache,
    readahead,
    block,
    // Before the probes that it hands calls to.
    system_calls,
    open,
    read,
    first_wait,
    off_cpu: stacks,
    // Before `memory`, so that looking is in no duration of a call.
    page_content,
    memory: stacks,
    memory_work,
    present,
    code_area: counts,
    cpu_sample: counts,
}
