//! Making rows: what fits into eight bytes, and what does not.

use super::{CfaRule, FramePointerRule, Row};

impl Row {
    /// No unwinding information.
    pub const UNKNOWN: Self = Self::plain(CfaRule::Unknown);
    /// The outermost frame.
    pub const OUTERMOST: Self = Self::plain(CfaRule::Outermost);
    /// The trampoline that a signal handler returns to.
    pub const SIGNAL_FRAME: Self = Self::plain(CfaRule::SignalFrame);
    /// A rule that rows cannot express.
    pub const UNSUPPORTED: Self = Self::plain(CfaRule::Unsupported);
    /// The exception unwinder hands over to a handler.
    pub const HANDS_OVER: Self = Self::plain(CfaRule::HandsOver);

    const fn plain(cfa: CfaRule) -> Self {
        Self { at: 0, cfa: cfa as u8, frame_pointer: 0, cfa_offset: 0, frame_pointer_offset: 0 }
    }

    /// A row at 0 from offsets in bytes; [`Row::UNSUPPORTED`] where the offset of the CFA is not a multiple of 8 in 16 bits, and
    /// [`FramePointerRule::Unknown`] where that of the frame pointer is not.
    pub(crate) fn new(
        cfa: CfaRule,
        cfa_offset: i64,
        frame_pointer: FramePointerRule,
        frame_pointer_offset: i64,
    ) -> Self {
        let Some(cfa_offset) = units(cfa_offset) else { return Self::UNSUPPORTED };
        let (frame_pointer, frame_pointer_offset) = match units(frame_pointer_offset) {
            Some(offset) => (frame_pointer, offset),
            None => (FramePointerRule::Unknown, 0),
        };
        Self { at: 0, cfa: cfa as u8, frame_pointer: frame_pointer as u8, cfa_offset, frame_pointer_offset }
    }

    /// The rule of the CFA; [`CfaRule::Unsupported`] where the byte is none.
    pub fn cfa_rule(&self) -> CfaRule {
        const RULES: [CfaRule; 10] = [
            CfaRule::Unknown,
            CfaRule::StackPointer,
            CfaRule::FramePointer,
            CfaRule::Outermost,
            CfaRule::LinkageTable,
            CfaRule::SignalFrame,
            CfaRule::AtFramePointer,
            CfaRule::Unsupported,
            CfaRule::HandsOver,
            CfaRule::HandingOver,
        ];
        RULES.get(usize::from(self.cfa)).copied().unwrap_or(CfaRule::Unsupported)
    }

    /// The rule of the frame pointer; [`FramePointerRule::Unknown`] where the byte is none.
    pub fn frame_pointer_rule(&self) -> FramePointerRule {
        match self.frame_pointer {
            0 => FramePointerRule::Same,
            1 => FramePointerRule::AtCfa,
            2 => FramePointerRule::AtFramePointer,
            4 => FramePointerRule::ReturnAddressAtCfa,
            5 => FramePointerRule::OnlyAtCfa,
            _ => FramePointerRule::Unknown,
        }
    }

    /// Whether two rows say the same, wherever they stand.
    pub(crate) fn same_rule(&self, other: &Self) -> bool {
        Self { at: 0, ..*self } == Self { at: 0, ..*other }
    }
}

fn units(bytes: i64) -> Option<i16> {
    if bytes % 8 != 0 {
        return None;
    }
    i16::try_from(bytes / 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_that_do_not_fit_are_not_cut_off() {
        let row = |cfa, pointer| Row::new(CfaRule::StackPointer, cfa, FramePointerRule::AtCfa, pointer);
        assert_eq!(row(32767 * 8, -32768 * 8).cfa_offset, 32767);
        assert_eq!(row(32767 * 8, -32768 * 8).frame_pointer_offset, -32768);
        assert_eq!(row(32768 * 8, -16), Row::UNSUPPORTED);
        assert_eq!(row(12, -16), Row::UNSUPPORTED);
        assert_eq!(row(16, -12).frame_pointer_rule(), FramePointerRule::Unknown);
        assert_eq!(row(16, -12).cfa_offset, 2);
    }
}
