//! Recordings that were made to exhaust memory or time: each is refused before it is decoded, and says why.

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use slowpath_recording::{MANIFEST_FILE, MOST_ROWS, Manifest, OpenError, Recording, SEGMENT_ROWS, Segment, Why};
use slowpath_tables::{Bytes, Symbol, Table};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn parquet(
    batch: &RecordBatch,
    properties: impl FnOnce(WriterPropertiesBuilder) -> WriterPropertiesBuilder,
) -> Vec<u8> {
    let builder = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(19).unwrap()));
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties(builder).build())).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

/// Rows of `symbols` whose functions have this name.
fn symbols(rows: usize, name: &str) -> RecordBatch {
    let schema = Symbol::schema();
    let columns = schema.fields().iter().map(|field| -> ArrayRef {
        match field.name().as_str() {
            "frame" => Arc::new(UInt32Array::from(vec![0; rows])),
            "level" => Arc::new(UInt32Array::from(vec![0; rows])),
            "function" => Arc::new(StringArray::from(vec![name; rows])),
            _ => arrow_array::new_null_array(field.data_type(), rows),
        }
    });
    RecordBatch::try_new(Symbol::schema(), columns.collect()).unwrap()
}

fn segment(number: usize, rows: usize, bytes: usize) -> Segment {
    let file = format!("symbols/{number}.parquet");
    Segment { table: "symbols".to_owned(), file, rows: rows as u64, bytes: Bytes(bytes as u64) }
}

/// A recording of one segment of `symbols`.
fn recording(rows: usize, content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    std::fs::create_dir(path.join("symbols")).unwrap();
    std::fs::write(path.join("symbols/0.parquet"), content).unwrap();
    write_manifest(&path, vec![segment(0, rows, content.len())]);
    (dir, path)
}

fn write_manifest(path: &Path, segments: Vec<Segment>) {
    std::fs::write(path.join(MANIFEST_FILE), Manifest { segments, ..Manifest::default() }.to_json()).unwrap();
}

/// Why the only segment cannot be read.
fn refused(rows: usize, content: &[u8]) -> Why {
    let (_dir, path) = recording(rows, content);
    let (read, mut damages) = Recording::open(&path).unwrap().read_whole::<Symbol>();
    assert!(read.is_empty(), "{} rows of a damaged segment", read.len());
    damages.remove(0).why
}

fn too_large(why: &Why) -> &'static str {
    match why {
        Why::TooLarge { what, .. } => what,
        other => panic!("{other}"),
    }
}

#[test]
fn a_sound_segment_of_the_full_size_is_read() {
    let content = parquet(&symbols(SEGMENT_ROWS, "operator new(unsigned long)"), |builder| builder);
    let (_dir, path) = recording(SEGMENT_ROWS, &content);
    assert_eq!(Recording::open(&path).unwrap().read::<Symbol>().unwrap().len(), SEGMENT_ROWS);
}

#[test]
fn rows_that_no_segment_has_are_refused_whoever_claims_them() {
    let content = parquet(&symbols(MOST_ROWS + 1, "f"), |builder| builder);
    assert!(content.len() < 100_000, "a few bytes claim many rows: {}", content.len());
    assert_eq!(too_large(&refused(MOST_ROWS + 1, &content)), "rows");
    let why = refused(7, &content);
    assert!(matches!(why, Why::Rows { expected: 7, found } if found == MOST_ROWS as u64 + 1), "{why}");
}

#[test]
fn a_page_that_becomes_large_is_refused_before_it_is_decompressed() {
    let name = "x".repeat(40 << 20);
    let content = parquet(&symbols(1, &name), |builder| builder.set_dictionary_enabled(false));
    assert!(content.len() < 100_000, "{}", content.len());
    drop(name);
    assert_eq!(too_large(&refused(1, &content)), "bytes of a page");
}

#[test]
fn one_long_word_for_all_rows_takes_no_more_memory_than_a_recording_of_that_size_may() {
    let name = "x".repeat(900 << 10);
    // 900 MB of text in some KB, written piece by piece.
    let builder = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(3).unwrap()));
    let mut writer = ArrowWriter::try_new(Vec::new(), Symbol::schema(), Some(builder.build())).unwrap();
    for _ in 0..40 {
        writer.write(&symbols(25, &name)).unwrap();
    }
    let content = writer.into_inner().unwrap();
    assert!(content.len() < 1_000_000, "{}", content.len());
    assert_eq!(too_large(&refused(1_000, &content)), "bytes in memory, with the segments before it,");
}

#[test]
fn a_form_of_pages_that_squares_their_size_is_refused() {
    let content = parquet(&symbols(10, "f"), |builder| {
        builder.set_dictionary_enabled(false).set_column_encoding("function".into(), Encoding::DELTA_BYTE_ARRAY)
    });
    let why = refused(10, &content);
    assert!(matches!(why, Why::Encoding(7)), "{why}");
}

#[test]
fn a_footer_of_many_columns_is_refused_before_it_is_parsed() {
    let names: Vec<String> = (0..20_000).map(|number| format!("c{number}")).collect();
    let one = || Arc::new(UInt64Array::from(vec![0])) as ArrayRef;
    let batch = RecordBatch::try_from_iter(names.iter().map(|name| (name.as_str(), one()))).unwrap();
    assert_eq!(too_large(&refused(1, &parquet(&batch, |builder| builder))), "bytes of footer");
}

#[test]
fn columns_that_the_table_has_not_are_not_decoded() {
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    let batch = symbols(3, "f");
    for (field, column) in Symbol::schema().fields().iter().zip(batch.columns()) {
        columns.push((field.name().clone(), column.clone()));
    }
    columns.push(("bomb".to_owned(), Arc::new(StringArray::from(vec!["x".repeat(40 << 20); 3]))));
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.iter().map(|(name, column)| (name, column.clone(), column.null_count() > 0)),
    )
    .unwrap();
    let content = parquet(&batch, |builder| builder.set_dictionary_enabled(false));
    let (_dir, path) = recording(3, &content);
    assert_eq!(Recording::open(&path).unwrap().read::<Symbol>().unwrap().len(), 3);
}

#[test]
fn a_manifest_that_lists_a_segment_twice_or_a_million_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Recording::open(dir.path()).map(drop).unwrap_err();
    write_manifest(dir.path(), vec![segment(0, 1, 1), segment(0, 1, 1)]);
    let error = open();
    assert!(matches!(&error, OpenError::Damaged { file, why: Why::Twice } if file == "symbols/0.parquet"), "{error}");
    write_manifest(dir.path(), (0..250_000).map(|number| segment(number, 1, 1)).collect());
    let error = open();
    // Indented as the writer does it, the text is over its own limit before.
    assert!(matches!(&error, OpenError::Damaged { why: Why::TooLarge { .. } | Why::Io(_), .. }), "{error}");
}
