//! Probe `cpu_sample`: which code threads were running, at regular times.

use crate::context::Context;
use crate::events::EVENT_CPU_SAMPLE;
use crate::events::{FLAG_ARGUMENTS, FLAG_COPIES, FLAG_KERNEL, cpu_sample_event, record};
use crate::probe::Probe;
use crate::records::RecordKind;
use crate::stack::Stacks;
use slowpath_tables::{CpuSample, Nanos};

/// The declaration.
pub(crate) static PROBE: Probe = Probe {
    name: "cpu_sample",
    title: "CPU samples",
    what: "Which code threads were running, at regular times, with their call stacks.",
    asked_for: "`--sample HZ`, `--stacks cpu`",
    price: "one interrupt and one walk of a stack a sample",
    is_essential: true,
    is_wanted: |options| options.cpu_hertz.is_some(),
    settings: Some(|_, options, _| {
        // The one read-only variable: `tells_arguments`.
        u32::from(options.memory_calls).to_ne_bytes().into()
    }),
    records: &[RecordKind::of::<cpu_sample_event>(EVENT_CPU_SAMPLE, "cpu_samples", |bytes, to| {
        to.out.cpu_samples.extend(decode(bytes, to.context, to.stacks));
    })],
    ..Probe::USUAL
};

pub(crate) fn decode(bytes: &[u8], context: &Context, stacks: &mut Stacks) -> Option<CpuSample> {
    let event: cpu_sample_event = record(bytes)?;
    let process = context.process(event.header.pid, Nanos(event.header.ts));
    let has = |flag: u32| u32::from(event.header.flags) & flag != 0;
    let tells_arguments = has(FLAG_ARGUMENTS);
    Some(CpuSample {
        ts: Nanos(event.header.ts),
        pid: process.pid,
        start: process.start,
        tid: event.header.tid,
        cpu: event.cpu,
        kernel: has(FLAG_KERNEL),
        stack: stacks.joined(event.header.stack, event.kernel_stack),
        first_argument: tells_arguments.then_some(event.first_argument),
        second_argument: tells_arguments.then_some(event.second_argument),
        copies: tells_arguments.then_some(has(FLAG_COPIES)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EVENT_CPU_SAMPLE, bytes_of, event_header};

    fn decoded(flags: u32) -> CpuSample {
        let header =
            event_header { kind: EVENT_CPU_SAMPLE as u16, flags: flags as u16, pid: 7, tid: 8, stack: 0, ts: 30 };
        let event =
            cpu_sample_event { header, cpu: 3, kernel_stack: 0, first_argument: 0x7f00_0000, second_argument: 0x10 };
        let bytes = bytes_of(&event);
        assert!(decode(&bytes[..bytes.len() - 1], &Context::default(), &mut Stacks::default()).is_none());
        decode(&bytes, &Context::default(), &mut Stacks::default()).unwrap()
    }

    #[test]
    fn arguments_are_reported_where_they_were_recorded_and_only_there() {
        let fields = |flags| {
            let row = decoded(flags);
            assert_eq!((row.ts, row.tid, row.cpu), (Nanos(30), 8, 3));
            (row.kernel, row.first_argument, row.second_argument, row.copies)
        };
        assert_eq!(fields(0), (false, None, None, None));
        assert_eq!(fields(FLAG_KERNEL | FLAG_COPIES), (true, None, None, None));
        assert_eq!(fields(FLAG_ARGUMENTS), (false, Some(0x7f00_0000), Some(0x10), Some(false)));
        assert_eq!(
            fields(FLAG_ARGUMENTS | FLAG_COPIES | FLAG_KERNEL),
            (true, Some(0x7f00_0000), Some(0x10), Some(true))
        );
    }
}
