//! Which transports somebody means who names one or all.

use super::{ALL, Transport};
use slowpath_tables::Unavailable;

/// A transport, or all that work here.
#[derive(Clone, Copy, Debug)]
pub enum Asked {
    /// One.
    One(&'static Transport),
    /// All that work here.
    All,
}

/// What was asked for by name and does not work here.
#[derive(Clone, Debug)]
pub struct NotHere {
    /// Which.
    pub transport: &'static Transport,
    /// Why, and what would change that.
    pub gap: Unavailable,
}

/// The transport, if it works here.
///
/// # Errors
/// It does not.
pub fn available(transport: &'static Transport) -> Result<&'static Transport, NotHere> {
    (transport.check)().map(|()| transport).map_err(|gap| NotHere { transport, gap })
}

/// The transports that were asked for, each once, and of "all" what does not work here.
///
/// # Errors
/// One that was asked for by name does not work here.
pub fn chosen(asked: &[Asked]) -> Result<(Vec<&'static Transport>, Vec<Unavailable>), NotHere> {
    let mut list: Vec<&'static Transport> = Vec::new();
    let mut gaps = Vec::new();
    for one in asked {
        let more = match one {
            Asked::One(transport) => vec![available(transport)?],
            Asked::All => {
                let (works, not): (Vec<_>, Vec<_>) =
                    ALL.iter().map(|transport| (transport.check)().map(|()| *transport)).partition(Result::is_ok);
                gaps.extend(not.into_iter().filter_map(Result::err));
                works.into_iter().flatten().collect()
            }
        };
        for transport in more {
            if !list.iter().any(|listed| std::ptr::eq(*listed, transport)) {
                list.push(transport);
            }
        }
    }
    Ok((list, gaps))
}

#[cfg(test)]
mod tests {
    use super::super::named;
    use super::*;

    #[test]
    fn each_transport_is_taken_once_and_what_does_not_work_is_an_error_only_by_name() {
        let pipe = named("pipe").unwrap();
        let (list, gaps) = chosen(&[Asked::One(pipe), Asked::All, Asked::One(pipe)]).unwrap();
        assert_eq!(list.iter().filter(|one| std::ptr::eq(**one, pipe)).count(), 1);
        assert_eq!(list.len() + gaps.len(), ALL.len());
        assert!(std::ptr::eq(list[0], pipe), "in the order in which they were asked for");
        if let Some(missing) = ALL.iter().find(|transport| (transport.check)().is_err()) {
            let refused = chosen(&[Asked::One(missing)]).unwrap_err();
            assert!(std::ptr::eq(refused.transport, *missing) && gaps.contains(&refused.gap));
        }
    }
}
