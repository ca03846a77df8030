//! Lists of CPUs and of memory nodes as the kernel prints them: `0-3,8` (cpuset(7), "List format").
//!
//! Owns reading them, from the kernel and from files of others alike. Leaves to who asks where a list stands, and whether an empty
//! one means anything.

/// More than the kernel can have of either (CONFIG_NR_CPUS, CONFIG_NODES_SHIFT): what names this number or more of them is no list.
const MOST: u32 = 1 << 16;

/// The numbers of a list such as `0-3,8`, in its order; blanks around it and around its numbers do not count. A text without any is an
/// empty list.
///
/// `None` where it is no such list: something else than numbers, a range that runs backwards, a number from 65536 on, or more than
/// 65536 numbers in all, so that a short text cannot take much memory.
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    if text.trim().is_empty() {
        return Some(numbers);
    }
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        let fits = first <= last && last < MOST && numbers.len() + ((last - first) as usize) < MOST as usize;
        if !fits {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_single_numbers_are_read_in_their_order() {
        assert_eq!(cpu_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpu_list("7, 0 - 1"), Some(vec![7, 0, 1]));
        assert_eq!(cpu_list("0\n"), Some(vec![0]));
        assert_eq!((cpu_list(""), cpu_list("\n")), (Some(vec![]), Some(vec![])));
        assert_eq!(cpu_list("0-65535").map(|all| all.len()), Some(65_536));
    }

    #[test]
    fn what_is_no_list_or_names_more_than_there_can_be_is_none() {
        for text in
            ["x", "0-x", "-", "3-1", "-1", "0,,1", "1,", "0-1-2", "65536", "0-99999999", "0-4294967295", "0-65535,0"]
        {
            assert_eq!(cpu_list(text), None, "{text}");
        }
    }
}
