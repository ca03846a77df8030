//! The macros that declare a table or a set of words once and derive row type, schema, conversion and documentation.

use crate::column::{Column, ColumnError};
use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::SchemaRef;

/// Documentation of one column, as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDoc {
    /// Name of the column.
    pub name: &'static str,
    /// Arrow type, printed.
    pub data_type: String,
    /// Whether nulls occur.
    pub nullable: bool,
    /// What it holds, with the unit.
    pub doc: String,
}

/// Documentation of one table, as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDoc {
    /// Name of the table and of its directory in a recording.
    pub name: &'static str,
    /// What one row is.
    pub doc: String,
    /// Its columns in order.
    pub columns: Vec<ColumnDoc>,
}

/// A table of a recording; the type is its row.
pub trait Table: Sized + Clone + std::fmt::Debug {
    /// Name of the table and of its directory in a recording.
    const NAME: &'static str;
    /// The Arrow schema.
    fn schema() -> SchemaRef;
    /// The declared documentation.
    fn doc() -> TableDoc;
    /// Rows as one batch of columns.
    fn to_batch(rows: &[Self]) -> RecordBatch;
    /// Rows of a batch that may come from a foreign or older file: unknown columns are ignored, and a column that may hold
    /// nulls and is missing holds nulls.
    ///
    /// # Errors
    /// A declared column is missing, has another type, or holds a value outside its set.
    fn from_batch(batch: &RecordBatch) -> Result<Vec<Self>, ColumnError> {
        let mut rows = Vec::new();
        Self::append_batch(batch, &mut rows)?;
        Ok(rows)
    }
    /// The same behind the rows that there are.
    ///
    /// # Errors
    /// As [`Table::from_batch`]; the rows before the one that is wrong are there then.
    fn append_batch(batch: &RecordBatch, rows: &mut Vec<Self>) -> Result<(), ColumnError>;
}

/// Joins the lines of a doc comment.
pub(crate) fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The declared column of a batch, with its type checked.
pub(crate) fn column<K: Column>(
    batch: &RecordBatch,
    table: &'static str,
    name: &'static str,
) -> Result<ArrayRef, ColumnError> {
    let Some(column) = batch.column_by_name(name) else {
        let nulls = || new_null_array(&K::TYPE, batch.num_rows());
        return if K::NULLABLE { Ok(nulls()) } else { Err(ColumnError::Missing { table, column: name }) };
    };
    if *column.data_type() != K::TYPE {
        let found = column.data_type().clone();
        return Err(ColumnError::Type { table, column: name, expected: K::TYPE, found });
    }
    Ok(column.clone())
}

macro_rules! table {
    (
        $(#[doc = $table_doc:literal])*
        $row:ident = $name:literal {
            $( $(#[doc = $doc:literal])* $column:ident: $kind:ty, )*
        }
    ) => {
        $(#[doc = $table_doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $row {
            $( $(#[doc = $doc])* pub $column: $kind, )*
        }

        impl $crate::declare::Table for $row {
            const NAME: &'static str = $name;

            fn schema() -> arrow_schema::SchemaRef {
                std::sync::Arc::new(arrow_schema::Schema::new(vec![
                    $( arrow_schema::Field::new(
                        stringify!($column),
                        <$kind as $crate::column::Column>::TYPE,
                        <$kind as $crate::column::Column>::NULLABLE,
                    ), )*
                ]))
            }

            fn doc() -> $crate::declare::TableDoc {
                $crate::declare::TableDoc {
                    name: $name,
                    doc: $crate::declare::joined(&[$($table_doc),*]),
                    columns: vec![
                        $( $crate::declare::ColumnDoc {
                            name: stringify!($column),
                            data_type: <$kind as $crate::column::Column>::TYPE.to_string(),
                            nullable: <$kind as $crate::column::Column>::NULLABLE,
                            doc: $crate::declare::joined(&[$($doc),*]),
                        }, )*
                    ],
                }
            }

            fn to_batch(rows: &[Self]) -> arrow_array::RecordBatch {
                let columns = vec![
                    $( <$kind as $crate::column::Column>::build(rows.iter().map(|row| row.$column.clone())), )*
                ];
                arrow_array::RecordBatch::try_new(Self::schema(), columns)
                    .expect("columns are built from the schema's own declaration, one value a row")
            }

            fn append_batch(
                batch: &arrow_array::RecordBatch,
                rows: &mut Vec<Self>,
            ) -> Result<(), $crate::column::ColumnError> {
                $(
                    let $column = $crate::declare::column::<$kind>(batch, $name, stringify!($column))?;
                )*
                let wrong = |column: &'static str, row: usize, problem: String| {
                    $crate::column::ColumnError::Value { table: $name, column, row, problem }
                };
                $(
                    let $column = <$kind as $crate::column::Column>::values($column.as_ref())
                        .map_err(|problem| wrong(stringify!($column), 0, problem))?;
                )*
                rows.reserve(batch.num_rows());
                for row in 0..batch.num_rows() {
                    rows.push(Self {
                        $( $column: <$kind as $crate::column::Column>::read(&$column, row)
                            .map_err(|problem| wrong(stringify!($column), row, problem))?, )*
                    });
                }
                Ok(())
            }
        }
    };
}

macro_rules! words {
    (
        $(#[doc = $doc:literal])*
        $name:ident { $( $(#[doc = $word_doc:literal])* $variant:ident = $word:literal, )* }
    ) => {
        $(#[doc = $doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $( $(#[doc = $word_doc])* $variant, )* }

        impl $name {
            /// All words, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// The word as it stands in the recording.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(format!("unknown word {text:?}")),
                }
            }
        }

        impl $crate::column::Column for $name {
            const TYPE: arrow_schema::DataType = arrow_schema::DataType::Utf8;
            fn build(values: impl Iterator<Item = Self>) -> arrow_array::ArrayRef {
                std::sync::Arc::new(arrow_array::StringArray::from_iter_values(values.map(Self::as_str)))
            }
            type Values<'a> = &'a arrow_array::StringArray;
            fn values(array: &dyn arrow_array::Array) -> Result<&arrow_array::StringArray, String> {
                <String as $crate::column::Column>::values(array)
            }
            fn read(values: &&arrow_array::StringArray, row: usize) -> Result<Self, String> {
                $crate::column::word(values, row)?.parse()
            }
        }

        impl $crate::column::Column for Option<$name> {
            const TYPE: arrow_schema::DataType = arrow_schema::DataType::Utf8;
            const NULLABLE: bool = true;
            fn build(values: impl Iterator<Item = Self>) -> arrow_array::ArrayRef {
                let words = values.map(|value| value.map($name::as_str));
                std::sync::Arc::new(words.collect::<arrow_array::StringArray>())
            }
            type Values<'a> = &'a arrow_array::StringArray;
            fn values(array: &dyn arrow_array::Array) -> Result<&arrow_array::StringArray, String> {
                <String as $crate::column::Column>::values(array)
            }
            fn read(values: &&arrow_array::StringArray, row: usize) -> Result<Self, String> {
                let word = <Option<String> as $crate::column::Column>::read(values, row)?;
                word.map(|word| word.parse()).transpose()
            }
        }
    };
}

pub(crate) use table;
pub(crate) use words;
