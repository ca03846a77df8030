//! Values of documents whose types this crate does not see: those of the Python package, and of `zygote`, which goes into products.

use super::enumeration::JsonEnumeration;

/// An enumeration.
struct Declared {
    document: &'static str,
    field: &'static str,
    about: &'static str,
    values: &'static [(&'static str, &'static str)],
}

const ALL: [Declared; 3] = [
    Declared {
        document: "fleet-experiment.json",
        field: "correction",
        about: "How p-values are corrected for the number of metrics that are compared.",
        values: &[
            ("holm", "Holm's step-down method: the chance of any false difference among all metrics is at most alpha."),
            (
                "benjamini-hochberg",
                "Benjamini and Hochberg's step-up method: of the differences that are reported, the expected share of false ones is \
                 at most alpha.",
            ),
        ],
    },
    Declared {
        document: "fleet-watch.json",
        field: "direction",
        about: "Which way a metric changed.",
        values: &[
            ("worse", "The quantile moved up; down where more is better, as `--better higher` says."),
            ("better", "The quantile moved down; up where more is better, as `--better higher` says."),
        ],
    },
    Declared {
        document: "zygote-serve.json",
        field: "ended",
        about: "Why a zygote ended.",
        values: &[
            ("stopped", "It was asked to: ctrl-C, SIGTERM, or `slowpath zygote stop`."),
            ("idle", "Nobody was connected for as long as `--idle` says."),
        ],
    },
];

/// All of them.
pub(super) fn all() -> impl Iterator<Item = JsonEnumeration> {
    ALL.into_iter().map(|one| JsonEnumeration {
        about: one.about.to_owned(),
        values: one.values.iter().map(|(value, what)| ((*value).to_owned(), (*what).to_owned())).collect(),
        fields: [one.field.to_owned()].into(),
        documents: [one.document.to_owned()].into(),
    })
}
