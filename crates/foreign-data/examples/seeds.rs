//! Writes inputs for the fuzzers that are made of a real recording: `cargo run --example seeds -- RECORDING NAME`, from the top of the
//! repository. `scripts/fuzz.sh minimise` keeps of them what covers most.

use slowpath_foreign_data::rows;
use slowpath_recording::{Recording, Tables};
use std::error::Error;
use std::path::Path;

/// Rows of each table in an input.
const ROWS: [usize; 3] = [2, 8, 24];
/// Longest segment that becomes an input.
const LONGEST: usize = 24 << 10;

fn write(target: &str, name: &str, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let folder = Path::new("fuzz/corpus").join(target);
    std::fs::create_dir_all(&folder)?;
    Ok(std::fs::write(folder.join(name), bytes)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(name)) = (arguments.next(), arguments.next()) else {
        return Err("seeds RECORDING NAME".into());
    };
    let recording = Recording::open(&directory)?;
    let tables = recording.tables()?;
    for most in ROWS {
        write("rows", &format!("{name}-{most}"), &rows::bytes(&tables, most))?;
    }
    let mut manifest = recording.manifest().clone();
    write("manifest", &format!("{name}-all"), manifest.to_json().as_bytes())?;
    let segments = std::mem::take(&mut manifest.segments);
    write("manifest", &name, manifest.to_json().as_bytes())?;
    let names: Vec<&str> = Tables::default().row_counts().iter().map(|(name, _)| *name).collect();
    for segment in segments {
        let bytes = std::fs::read(Path::new(&directory).join(&segment.file))?;
        let number = names.iter().position(|name| *name == segment.table);
        let (Some(number), true) = (number, bytes.len() <= LONGEST) else { continue };
        let head = [u8::try_from(number)?, segment.rows as u8, (segment.rows >> 8) as u8];
        write("recording", &format!("{name}-{}", segment.table), &[&head, bytes.as_slice()].concat())?;
    }
    Ok(())
}
