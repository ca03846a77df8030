//! Whether a zygote pays.

use super::escape_terminal;
use slowpath_analysis::starts::zygote_advice::{Answer, ZygoteAdvice};

/// The screen of `slowpath zygote advise`.
pub fn zygote_advice(advice: &ZygoteAdvice) -> String {
    let answer = match advice.answer {
        Answer::Yes => "yes: a zygote pays",
        Answer::No => "no: a zygote does not pay",
        Answer::Unknown => "unknown: this recording does not decide it",
    };
    let mut text = format!("{answer}\n");
    for reason in &advice.reasons {
        text.push_str(&format!("  {}\n", escape_terminal(reason)));
    }
    if let Some(saving) = &advice.predicted_saving {
        let interval =
            saving.low.zip(saving.high).map_or_else(String::new, |(low, high)| format!(" ({low:.1} to {high:.1})"));
        let value = saving.value;
        text.push_str(&format!("  predicted saving: {value:.1} ms{interval} of CPU time, all children together\n"));
    }
    text
}
