//! One segment: rows to Parquet bytes and back.

use crate::read_error::Why;
use crate::segment_limits::{self, Allowance};
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use slowpath_tables::{Bytes, Table};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Columns that are smaller, in bytes in memory, are written as they are. To write and to read, each column has a compressor and a
/// decompressor of its own, and each of these asks the CPU what it is three times (`cpuid`): 8 us a time where a hypervisor answers.
const COMPRESSED_FROM: usize = 4096;

/// zstd at level 1: the recorder shares the machine with what it measures.
fn properties(batch: &RecordBatch) -> Result<WriterProperties, ParquetError> {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by("slowpath".to_owned());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if column.to_data().get_slice_memory_size()? < COMPRESSED_FROM {
            builder =
                builder.set_column_compression(ColumnPath::from(field.name().as_str()), Compression::UNCOMPRESSED);
        }
        // Integers that seldom repeat: differences are small, a dictionary would only be given up half-way.
        let distinct = matches!(field.name().as_str(), "ts" | "duration" | "latency" | "address" | "page" | "sector");
        if distinct && *field.data_type() == DataType::UInt64 {
            let path = ColumnPath::from(field.name().as_str());
            builder = builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(builder.build())
}

/// The first rows of a batch that fit into `room`, their number and their file, which is empty where none fit.
pub(crate) fn encode_within(batch: &RecordBatch, room: Bytes) -> Result<(u64, Vec<u8>), ParquetError> {
    let mut rows = batch.num_rows();
    while rows > 0 && room.0 > 0 {
        let content = encode(&batch.slice(0, rows))?;
        let size = content.len() as u64;
        if size <= room.0 {
            return Ok((rows as u64, content));
        }
        // As many as their average size lets hope for, less a tenth: rows differ, and a file has parts of its own.
        rows = (rows as u128 * u128::from(room.0) * 9 / (u128::from(size) * 10)) as usize;
    }
    Ok((0, Vec::new()))
}

/// A batch as the bytes of a Parquet file; strings and repeating numbers as dictionaries.
fn encode(batch: &RecordBatch) -> Result<Vec<u8>, ParquetError> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties(batch)?))?;
    writer.write(batch)?;
    writer.into_inner()
}

/// Adds the rows of a Parquet file that may be foreign or damaged, and of which the manifest says that it has `bytes` and `rows`; of a
/// damaged one some may have been added.
pub(crate) fn decode<T: Table>(
    file: File,
    (bytes, expected): (u64, u64),
    allowance: &Allowance,
    rows: &mut Vec<T>,
) -> Result<(), Why> {
    // The decoder meets bytes that anybody may have changed; a panic in it is damage of the file, not ours.
    catch_unwind(AssertUnwindSafe(|| {
        let file = Arc::new(file);
        let wanted: Vec<String> = T::schema().fields().iter().map(|field| field.name().clone()).collect();
        let checked = segment_limits::check(&file, bytes, expected, &wanted, allowance)?;
        // The check is done with it.
        let file = Arc::into_inner(file).ok_or(Why::Undecodable)?;
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, checked.footer)
            .with_projection(checked.columns)
            .with_batch_size(checked.batch_rows)
            .build()
            .map_err(Why::Parquet)?;
        let before = rows.len();
        for batch in reader {
            let batch = batch.map_err(Why::Arrow)?;
            let size = batch.get_array_memory_size() as u64;
            allowance.take(size.saturating_add((batch.num_rows() * size_of::<T>()) as u64))?;
            T::append_batch(&batch, rows).map_err(Why::Column)?;
            let found = (rows.len() - before) as u64;
            if found > expected {
                return Err(Why::Rows { expected, found });
            }
        }
        Ok(())
    }))
    .unwrap_or(Err(Why::Undecodable))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, UInt64Array};
    use std::io::Write;

    fn compression(rows: u64) -> Compression {
        let column: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..rows).map(|row| row % 7)));
        let batch = RecordBatch::try_from_iter([("pages", column)]).unwrap();
        // A part of the batch has the whole batch's memory.
        let content = encode(&batch.slice(0, rows as usize / 2)).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        let read = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        read.metadata().row_group(0).column(0).compression()
    }

    #[test]
    fn only_columns_of_some_kilobytes_are_compressed() {
        assert_eq!(compression(1_000), Compression::UNCOMPRESSED);
        assert!(matches!(compression(1_026), Compression::ZSTD(_)));
    }
}
