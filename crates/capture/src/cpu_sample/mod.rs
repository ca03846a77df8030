//! Probe `cpu_sample`: which code threads were running, at regular times.

use crate::context::Context;
use crate::events::{FLAG_KERNEL, cpu_sample_event, record};
use crate::stack::Stacks;
use slowpath_tables::{CpuSample, Nanos};

pub(crate) fn decode(bytes: &[u8], context: &Context, stacks: &mut Stacks) -> Option<CpuSample> {
    let event: cpu_sample_event = record(bytes)?;
    let process = context.process(event.header.pid, Nanos(event.header.ts));
    Some(CpuSample {
        ts: Nanos(event.header.ts),
        pid: process.pid,
        start: process.start,
        tid: event.header.tid,
        cpu: event.cpu,
        kernel: u32::from(event.header.flags) & FLAG_KERNEL != 0,
        stack: stacks.joined(event.header.stack, event.kernel_stack),
    })
}
