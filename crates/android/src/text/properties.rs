//! `getprop`: `[key]: [value]`.

use super::lines;
use std::collections::BTreeMap;

/// Properties of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

/// Reads the output of `getprop`. A value of several lines keeps its first one.
pub fn properties(text: &str) -> Properties {
    let pair = |line: &str| {
        let (key, value) = line.trim_end().strip_prefix('[')?.split_once("]: [")?;
        Some((key.to_owned(), value.strip_suffix(']').unwrap_or(value).to_owned()))
    };
    Properties(lines(text).filter_map(pair).collect())
}

impl Properties {
    /// The value of a property that is set and not empty.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The API level (`ro.build.version.sdk`): 26 is Android 8.0, 29 is 10, 31 is 12, 34 is 14.
    pub fn api_level(&self) -> Option<u32> {
        self.get("ro.build.version.sdk")?.parse().ok()
    }

    /// Instruction sets by ART's names, the preferred one first (`ro.product.cpu.abilist`).
    pub fn instruction_sets(&self) -> Vec<&'static str> {
        const NAMES: [(&str, &str); 6] = [
            ("arm64-v8a", "arm64"),
            ("armeabi-v7a", "arm"),
            ("armeabi", "arm"),
            ("x86_64", "x86_64"),
            ("x86", "x86"),
            ("riscv64", "riscv64"),
        ];
        let abis = self.get("ro.product.cpu.abilist").or_else(|| self.get("ro.product.cpu.abi")).unwrap_or_default();
        let mut found = Vec::new();
        for abi in abis.split(',') {
            let name = NAMES.iter().find(|(known, _)| *known == abi.trim()).map(|(_, name)| *name);
            found.extend(name.filter(|name| !found.contains(name)));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_and_instruction_sets_are_read() {
        let found = properties(
            "[ro.build.version.sdk]: [33]\r\n[ro.product.cpu.abilist]: [arm64-v8a,armeabi-v7a,armeabi]\n[x]: []\nnoise\n",
        );
        assert_eq!((found.api_level(), found.get("x")), (Some(33), None));
        assert_eq!(found.instruction_sets(), ["arm64", "arm"]);
    }
}
