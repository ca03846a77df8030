//! The order of a binary's code on a screen: what was made, what orders would save, and what each section costs.

use super::escape::escape_terminal;
use slowpath_layout::explained::Explained;
use slowpath_layout::ordered::Ordered;
use slowpath_layout::repacked::Repacked;
use slowpath_layout::scored::{Scored, ScoredCost};
use slowpath_layout::traced::TracedCommand;
use std::path::Path;

/// What a reader of a trace must know, a line each.
pub fn layout_trace_doubts(traced: &TracedCommand) -> Vec<String> {
    let trace = &traced.trace;
    let left_out = trace.left_out.iter();
    let mut lines: Vec<String> =
        left_out.map(|file| format!("not traced: {}: {}", escape_terminal(&file.path), file.reason.words())).collect();
    for file in trace.objects.iter().filter(|file| file.is_mostly_unknown()) {
        let share = 100 * file.function_bytes / file.code_bytes.max(1);
        let path = escape_terminal(&file.path);
        lines.push(format!("warning: symbols and unwind tables cover only {share} % of the code of {path}"));
    }
    if traced.released > 0 {
        lines.push(format!("detached and still running: {} processes", traced.released));
    }
    if trace.lost > 0 {
        lines.push(format!("warning: {} first uses were lost", trace.lost));
    }
    lines
}

/// What was traced, in one line.
pub fn layout_traced(traced: &TracedCommand, path: &Path) -> String {
    format!(
        "{} first uses of {} functions in {} files, {} programs; the trace is in {}",
        traced.trace.first_uses.len(),
        traced.functions(),
        traced.trace.objects.len(),
        traced.trace.programs.len(),
        escape_terminal(&path.to_string_lossy()),
    )
}

/// The order that was made, with a newline after every line; `best`: whether the algorithm was to be chosen.
pub fn layout_order(made: &Ordered, best: bool) -> String {
    let Ordered { ordered: count, bytes, object, algorithm, usage, .. } = made;
    let mut text =
        format!("{count} functions ({bytes} bytes) of {} in the order `{algorithm}`\n", escape_terminal(object));
    if made.unnamed > 0 {
        text.push_str(&format!(
            "  {} functions have no name and are in no order: trace a build that is not stripped\n",
            made.unnamed
        ));
    }
    if made.stale > 0 {
        text.push_str(&format!("  {} functions are missing or ambiguous in the other build\n", made.stale));
    }
    if !made.held_out && best {
        text.push_str("  one trace shows nothing of other work: trace several kinds of it\n");
    }
    text.push_str(&format!("  {}\n", escape_terminal(usage)));
    text
}

/// The copy that was made, with a newline after every line.
pub fn layout_repacked(made: &Repacked) -> String {
    let Repacked { needed_pages, moved_pages, runs, headers_before, headers, .. } = made;
    let (binary, output) = (escape_terminal(&made.binary), escape_terminal(&made.output));
    let mut text = String::new();
    if let Some((relocations, pages)) = made.relocations.zip(made.relocated_pages) {
        text.push_str(&format!("{relocations} relocations of {binary}, in {pages} pages, are done in {output}\n"));
        text.push_str(
            "  the copy has one address, which whoever attacks it knows; libraries, heap and stack have not\n",
        );
    }
    if *needed_pages > 0 {
        text.push_str(&format!(
            "{needed_pages} needed pages of {binary}, in {runs} runs, stand together in {output}\n"
        ));
        text.push_str(&format!(
            "  {} pages are holes between them; {} KiB, {} KiB before; {headers} program headers, {headers_before} before\n",
            moved_pages.saturating_sub(*needed_pages),
            made.bytes >> 10,
            made.bytes_before >> 10,
        ));
    }
    if made.code_only {
        text.push_str("  traces know code alone; a preload plan of cold launches has the pages of data, too\n");
    }
    let cold = if *needed_pages > 0 { "--cold " } else { "" };
    text.push_str(&format!("  compare: slowpath launch {cold}--vs 'COPY ARGUMENTS' -- BINARY ARGUMENTS\n"));
    text
}

/// What orders would save, with a newline after every line.
pub fn layout_score(scored: &Scored) -> String {
    let mut text = format!(
        "{}: {} of {} functions used ({} of {} KiB), {} trace{}; pages of {} KiB\n\n",
        escape_terminal(&scored.binary),
        scored.used,
        scored.functions,
        scored.used_bytes >> 10,
        scored.function_bytes >> 10,
        scored.traces,
        if scored.traces == 1 { "" } else { "s" },
        scored.page_size >> 10,
    );
    text.push_str("order           pages            held out   faults   cold faults   pages read\n");
    let current = scored.orders.first().map_or(0.0, |order| order.train.pages);
    let change = |pages: f64| {
        if current > 0.0 && pages != current {
            format!("{:+.0} %", 100.0 * (pages / current - 1.0))
        } else {
            String::new()
        }
    };
    for order in &scored.orders {
        let held_out = order.held_out.filter(|_| order.name != "current");
        let held_out = held_out.map_or(String::new(), |cost| format!("{:.0} {}", cost.pages, change(cost.pages)));
        let ScoredCost { pages, faults, cold_faults, pages_read } = order.train;
        text.push_str(&format!(
            "{:<14} {:>6.0} {:>7} {:>13} {:>8.0} {:>13.0} {:>12.0}\n",
            escape_terminal(&order.name),
            pages,
            change(pages),
            held_out,
            faults,
            cold_faults,
            pages_read,
        ));
    }
    if scored.traces == 1 {
        text.push_str("\nOne trace shows nothing of other work: with several, each is held out once.\n");
    }
    text
}

/// Pages of sections, with a newline after every line.
pub fn layout_why(explained: &Explained) -> String {
    let mut text = format!(
        "{}: {} relocations add the base, {} look up a symbol; pages of {} KiB\n\n\
         section              pages   needed   by\n",
        escape_terminal(&explained.binary),
        explained.relative_relocations,
        explained.symbolic_relocations,
        explained.page_size >> 10,
    );
    for section in &explained.sections {
        let needed = section.needed.map_or("?".to_owned(), |pages| format!("{pages:.0}"));
        let name = escape_terminal(&section.name);
        text.push_str(&format!("{name:<18} {:>7} {needed:>8}   {}\n", section.pages, section.by));
        for remedy in &section.remedies {
            text.push_str(&format!("{:<26} {:>8.0}   with {}\n", "", remedy.pages, remedy.flag));
        }
    }
    text
}
