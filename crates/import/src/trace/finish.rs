//! The end of a trace: what lasts until then, names of frames, and the manifest. What a trace takes before is [`Trace`]'s.

use super::{KERNEL, Trace};
use crate::declaration::Importer;
use crate::local_code::{self, LocalCode};
use crate::problem::ImportError;
use slowpath_recording::Manifest;
use slowpath_symbols::symbolize::RecordedKernel;
use slowpath_tables::Nanos;

impl Trace<'_> {
    /// Names of what the trace does not name.
    fn names(&mut self, local: Option<&LocalCode<'_>>) -> Result<(), ImportError> {
        let kernel = self.kernel_symbol.take().zip(self.files.build_id_at(KERNEL));
        let kernel = kernel.map(|((symbol, address), id)| RecordedKernel { build_id: id.to_owned(), symbol, address });
        let looked = local_code::name(&self.stacks, &self.files, kernel.as_ref(), local);
        for symbol in looked.symbols {
            self.row(symbol)?;
        }
        let gap = if local.is_some() { looked.gap } else { Some("it holds addresses".to_owned()) };
        if let Some((remedy, gap)) = self.has_no_names.zip(gap) {
            self.facts.lack("the names of functions", gap, remedy);
        }
        Ok(())
    }

    /// Writes what lasts until the end, names of frames among it, and fills the manifest; `stopped` says why the trace was not read to
    /// its end. Without `local`, nothing is looked up on this machine.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn finish(
        mut self,
        importer: &Importer,
        stopped: Option<String>,
        local: Option<&LocalCode<'_>>,
        manifest: &mut Manifest,
    ) -> Result<(), ImportError> {
        self.names(local)?;
        let last = self.facts.span.map_or(Nanos(0), |(_, last)| last);
        for row in self.waits.finish(last) {
            self.row(row)?;
        }
        self.facts.losses.add("off_cpu", self.waits.without_end);
        if self.stacks.is_full {
            self.facts.lack("further call stacks", "there are more than an import keeps in memory", "a shorter trace");
        }
        if self.files.is_full {
            self.facts.lack("further files", "there are more than an import keeps in memory", "a shorter trace");
        }
        self.facts.fill(importer, stopped, manifest);
        Ok(())
    }
}
