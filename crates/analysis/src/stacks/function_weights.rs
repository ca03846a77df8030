//! Which functions have the most samples, or the most time in faults, of their own.
//!
//! A row counts for the innermost function of its call stack, what it called not: *self*, not inclusive. For a fault that is
//! the code that touched the page, for a CPU sample the code that ran, in the kernel too. Owns that sum; leaves stacks and
//! names to [`crate::stacks::call_stacks`].

use crate::stacks::call_stacks::CallStacks;
use std::collections::HashMap;

/// What one function has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionWeight {
    /// Its name; `None` for all functions of `place` together whose names are not known. Foreign text.
    pub function: Option<String>,
    /// Name of the file, `[kernel]`, `[vdso]`, `[generated]`, `[truncated]`, `[unknown]`, or `[no stack]`. Foreign text.
    pub place: String,
    /// Sum over its rows.
    pub weight: u64,
}

/// Functions with the most weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionWeights {
    /// The most first, at most as many as were asked for.
    pub functions: Vec<FunctionWeight>,
    /// Weight of all rows, those without a stack included.
    pub total: u64,
}

/// Adds up `rows` (`stack` and weight) by function and keeps the `most` heaviest. `None` where no row has a stack.
pub fn heaviest(
    stacks: &CallStacks<'_>,
    rows: impl Iterator<Item = (Option<u32>, u64)>,
    most: usize,
) -> Option<FunctionWeights> {
    let mut of_frame = vec![0u64; stacks.frames().len()];
    let (mut total, mut without, mut has_stacks) = (0u64, 0u64, false);
    for (stack, weight) in rows {
        total = total.saturating_add(weight);
        let path = stacks.path(stack);
        has_stacks |= path.is_some();
        let sum = match path {
            Some(path) => of_frame.get_mut(stacks.frame_number(path) as usize),
            None => Some(&mut without),
        };
        if let Some(sum) = sum {
            *sum = sum.saturating_add(weight);
        }
    }
    let mut sums: HashMap<(Option<&str>, String), u64> = HashMap::new();
    let mut add = |key, weight: u64| {
        let sum: &mut u64 = sums.entry(key).or_default();
        *sum = sum.saturating_add(weight);
    };
    for (frame, weight) in stacks.frames().iter().zip(of_frame).filter(|(_, weight)| *weight > 0) {
        let named = frame.functions.first().filter(|function| function.named);
        add((named.map(|function| function.name.as_ref()), frame.place.name().into_owned()), weight);
    }
    if without > 0 {
        add((None, "[no stack]".to_owned()), without);
    }
    let named = |((function, place), weight): ((Option<&str>, String), u64)| FunctionWeight {
        function: function.map(str::to_owned),
        place,
        weight,
    };
    let mut functions: Vec<FunctionWeight> = sums.into_iter().map(named).collect();
    functions
        .sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| (&a.place, &a.function).cmp(&(&b.place, &b.function))));
    functions.truncate(most);
    has_stacks.then_some(FunctionWeights { functions, total })
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::Tables;

    #[test]
    fn rows_count_for_the_innermost_function_and_code_without_names_for_its_file() {
        let text = "
== stacks
id parent frame
0 - 0
1 0 1
2 0 2
3 0 3
4 - 9
== frames
id kind dev ino offset
0 file 1 42 0x10
1 file 1 42 0x20
2 file 1 43 0x30
3 file 1 43 0x40
== symbols
frame level function
0 0 main
1 0 inlined
1 1 outer
== files
dev ino path
1 42 /usr/bin/program
1 43 /usr/lib/libstripped.so
";
        let tables = Tables::from_text(text).unwrap();
        let stacks = CallStacks::new(&tables);
        let rows = [(Some(0), 5), (Some(1), 30), (Some(2), 20), (Some(3), 21), (Some(4), 3), (None, 7)];
        let found = heaviest(&stacks, rows.into_iter(), 5).unwrap();
        let functions: Vec<_> = found
            .functions
            .iter()
            .map(|one| (one.function.as_deref().unwrap_or("-"), one.place.as_str(), one.weight))
            .collect();
        assert_eq!(
            functions,
            [
                ("-", "libstripped.so", 41),
                ("inlined", "program", 30),
                ("-", "[no stack]", 7),
                ("main", "program", 5),
                ("-", "[unknown]", 3)
            ]
        );
        assert_eq!(found.total, 86);
        assert_eq!(heaviest(&stacks, rows.into_iter(), 1).unwrap().functions.len(), 1);
        assert_eq!(heaviest(&stacks, [(None, 7)].into_iter(), 5), None);
    }
}
