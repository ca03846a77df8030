//! How a Rust value becomes an Arrow column and back.

use crate::units::{Bytes, Nanos, Pages};
use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array, StringArray, UInt32Array, UInt64Array};
use arrow_schema::DataType;
use std::sync::Arc;

/// A column that is not what its declaration says, met when reading a foreign or damaged file.
#[derive(Debug, thiserror::Error)]
pub enum ColumnError {
    /// The column is not in the file.
    #[error("table {table}: column {column} is missing")]
    Missing {
        /// Table.
        table: &'static str,
        /// Column.
        column: &'static str,
    },
    /// The column has another type.
    #[error("table {table}: column {column} has type {found}, expected {expected}")]
    Type {
        /// Table.
        table: &'static str,
        /// Column.
        column: &'static str,
        /// Declared type.
        expected: DataType,
        /// Type in the file.
        found: DataType,
    },
    /// A value is null or outside the column's set of words.
    #[error("table {table}: column {column}, row {row}: {problem}")]
    Value {
        /// Table.
        table: &'static str,
        /// Column.
        column: &'static str,
        /// Row within its batch.
        row: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// A type that a column of a table can hold.
pub trait Column: Sized {
    /// Arrow type of the column.
    const TYPE: DataType;
    /// Whether the column may hold nulls.
    const NULLABLE: bool = false;
    /// The column with its type known: found once for a column, not once for each of its values.
    type Values<'a>;
    /// Builds the column.
    fn build(values: impl Iterator<Item = Self>) -> ArrayRef;
    /// The values of a column. `Err` where it is of another type.
    fn values(array: &dyn Array) -> Result<Self::Values<'_>, String>;
    /// Reads the value of `row`. `Err` says what is wrong with it.
    fn read(values: &Self::Values<'_>, row: usize) -> Result<Self, String>;
}

fn typed<T: 'static>(array: &dyn Array) -> Result<&T, String> {
    array.as_any().downcast_ref::<T>().ok_or_else(|| format!("unexpected array type {}", array.data_type()))
}

fn not_null(array: &impl Array, row: usize) -> Result<(), String> {
    if array.is_null(row) { Err("is null".to_owned()) } else { Ok(()) }
}

macro_rules! primitive_column {
    ($rust:ty, $array:ty, $data:expr, $wrap:expr, $unwrap:expr) => {
        impl Column for $rust {
            const TYPE: DataType = $data;
            fn build(values: impl Iterator<Item = Self>) -> ArrayRef {
                Arc::new(<$array>::from_iter_values(values.map($unwrap)))
            }
            type Values<'a> = &'a $array;
            fn values(array: &dyn Array) -> Result<&$array, String> {
                typed(array)
            }
            fn read(values: &&$array, row: usize) -> Result<Self, String> {
                not_null(*values, row)?;
                Ok($wrap(values.value(row)))
            }
        }
        impl Column for Option<$rust> {
            const TYPE: DataType = $data;
            const NULLABLE: bool = true;
            fn build(values: impl Iterator<Item = Self>) -> ArrayRef {
                Arc::new(values.map(|value| value.map($unwrap)).collect::<$array>())
            }
            type Values<'a> = &'a $array;
            fn values(array: &dyn Array) -> Result<&$array, String> {
                typed(array)
            }
            fn read(values: &&$array, row: usize) -> Result<Self, String> {
                Ok((!values.is_null(row)).then(|| $wrap(values.value(row))))
            }
        }
    };
}

primitive_column!(u64, UInt64Array, DataType::UInt64, |v| v, |v| v);
primitive_column!(u32, UInt32Array, DataType::UInt32, |v| v, |v| v);
primitive_column!(i64, Int64Array, DataType::Int64, |v| v, |v| v);
primitive_column!(i32, Int32Array, DataType::Int32, |v| v, |v| v);
primitive_column!(Nanos, UInt64Array, DataType::UInt64, Nanos, |v: Nanos| v.0);
primitive_column!(Bytes, UInt64Array, DataType::UInt64, Bytes, |v: Bytes| v.0);
primitive_column!(Pages, UInt64Array, DataType::UInt64, Pages, |v: Pages| v.0);

impl Column for bool {
    const TYPE: DataType = DataType::Boolean;
    fn build(values: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(values.map(Some).collect::<BooleanArray>())
    }
    type Values<'a> = &'a BooleanArray;
    fn values(array: &dyn Array) -> Result<&BooleanArray, String> {
        typed(array)
    }
    fn read(values: &&BooleanArray, row: usize) -> Result<Self, String> {
        not_null(*values, row)?;
        Ok(values.value(row))
    }
}

impl Column for Option<bool> {
    const TYPE: DataType = DataType::Boolean;
    const NULLABLE: bool = true;
    fn build(values: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(values.collect::<BooleanArray>())
    }
    type Values<'a> = &'a BooleanArray;
    fn values(array: &dyn Array) -> Result<&BooleanArray, String> {
        typed(array)
    }
    fn read(values: &&BooleanArray, row: usize) -> Result<Self, String> {
        Ok((!values.is_null(row)).then(|| values.value(row)))
    }
}

impl Column for String {
    const TYPE: DataType = DataType::Utf8;
    fn build(values: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(values))
    }
    type Values<'a> = &'a StringArray;
    fn values(array: &dyn Array) -> Result<&StringArray, String> {
        typed(array)
    }
    fn read(values: &&StringArray, row: usize) -> Result<Self, String> {
        word(values, row).map(str::to_owned)
    }
}

/// The text of a row that must have one.
pub(crate) fn word(values: &StringArray, row: usize) -> Result<&str, String> {
    not_null(values, row)?;
    Ok(values.value(row))
}

impl Column for Option<String> {
    const TYPE: DataType = DataType::Utf8;
    const NULLABLE: bool = true;
    fn build(values: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(values.collect::<StringArray>())
    }
    type Values<'a> = &'a StringArray;
    fn values(array: &dyn Array) -> Result<&StringArray, String> {
        typed(array)
    }
    fn read(values: &&StringArray, row: usize) -> Result<Self, String> {
        Ok((!values.is_null(row)).then(|| values.value(row).to_owned()))
    }
}
