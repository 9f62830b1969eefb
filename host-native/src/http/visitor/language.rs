//! Languages of the waiting page: which one a visitor reads, and its strings. `?lang=` decides
//! before `Accept-Language`; English is for everybody else (HOL-37).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

/// A language of the waiting page.
pub struct Language {
    /// Its code.
    pub code: &'static str,
    /// `ltr` or `rtl`.
    pub direction: &'static str,
    strings: BTreeMap<String, String>,
    /// The strings as the page's script reads them.
    pub json: Value,
}

macro_rules! languages {
    ($($code:literal $direction:literal,)*) => {
        /// The codes of all languages.
        pub const CODES: &[&str] = &[$($code),*];

        static ALL: LazyLock<Vec<Language>> = LazyLock::new(|| {
            vec![$(Language::read(
                $code,
                $direction,
                include_str!(concat!("../../../../public/i18n/", $code, ".json")),
            )),*]
        });
    };
}

languages! {
    "en" "ltr",
    "th" "ltr",
    "de" "ltr",
    "es" "ltr",
    "fr" "ltr",
    "ja" "ltr",
    "zh" "ltr",
    "ar" "rtl",
}

/// Ranges of `Accept-Language` looked at.
const RANGES_MAX: usize = 32;

impl Language {
    fn read(code: &'static str, direction: &'static str, text: &str) -> Self {
        let map: Map<String, Value> =
            serde_json::from_str(text).expect("the translations are JSON, a test reads them");
        let strings = map
            .iter()
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        Self { code, direction, strings, json: map.into() }
    }

    /// The string of a key; a test proves that pages ask for no other.
    #[must_use]
    pub fn text(&self, key: &str) -> &str {
        self.strings.get(key).map_or("", String::as_str)
    }

    /// The string of a key with `{name}` replaced.
    #[must_use]
    pub fn fill(&self, key: &str, name: &str, value: &str) -> String {
        self.text(key).replace(&format!("{{{name}}}"), value)
    }
}

/// Chooses the language of a visitor.
#[must_use]
pub fn choose(asked: Option<&str>, accepted: Option<&str>) -> &'static Language {
    let known = |code: &str| ALL.iter().find(|language| language.code.eq_ignore_ascii_case(code));
    let by_header = || {
        let mut ranges: Vec<(u16, &str)> =
            accepted?.split(',').take(RANGES_MAX).filter_map(weighted).collect();
        // Stable: of equal weights the first one named wins.
        ranges.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        ranges.iter().find_map(|(_, range)| known(range.split('-').next().unwrap_or_default()))
    };
    asked.and_then(known).or_else(by_header).unwrap_or(&ALL[0])
}

/// A range with its weight in thousandths; `None` when it is not wanted.
fn weighted(entry: &str) -> Option<(u16, &str)> {
    let mut parts = entry.split(';').map(str::trim);
    let range = parts.next()?;
    let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |q| {
        q.trim().parse::<f32>().ok().filter(|weight| (0.0..=1.0).contains(weight))
    })?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 1000"
    )]
    let thousandths = (weight * 1000.0) as u16;
    (thousandths > 0 && !range.is_empty()).then_some((thousandths, range))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_by_choice_weight_region_and_order() {
        for (asked, accepted, code) in [
            (None, None, "en"),
            (Some("fr"), Some("th"), "fr"),
            (Some("xx"), Some("es"), "es"),
            (None, Some("th-TH,th;q=0.9,en;q=0.5"), "th"),
            (None, Some("xx, de;q=0.8, en;q=0.2"), "de"),
            (None, Some("fr;q=0, es;q=0.1"), "es"),
            (None, Some("en;q=0.1, zh-TW;q=0.9, ja;q=0.5"), "zh"),
            (None, Some("q=;;;,,ja;q=nope,de;q=2"), "en"),
        ] {
            assert_eq!(choose(asked, accepted).code, code, "{asked:?} {accepted:?}");
        }
    }

    #[test]
    fn every_language_has_the_keys_of_english() {
        let keys = |language: &Language| language.strings.keys().cloned().collect::<Vec<_>>();
        for language in ALL.iter() {
            assert_eq!(keys(language), keys(&ALL[0]), "{}", language.code);
            assert!(language.strings.values().all(|text| !text.is_empty()), "{}", language.code);
        }
    }
}
