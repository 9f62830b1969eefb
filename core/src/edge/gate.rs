//! Which requests are checked at all (`QM_GATE`). What a client does not declare is checked: bots
//! and old browsers declare nothing.

use super::Facts;

/// The setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    /// GET and HEAD that the browser did not declare to be a subresource (CFW-21).
    #[default]
    Navigations,
    /// `Sec-Fetch-Dest: document` only (CFW-22).
    Documents,
    /// Every request of every method (CFW-23).
    All,
}

/// What `Sec-Fetch-Dest` calls things that are no page of their own. A value that is not listed is
/// checked, so that a new or invented one opens nothing.
const SUBRESOURCES: [&str; 20] = [
    "audio",
    "audioworklet",
    "empty",
    "font",
    "image",
    "json",
    "manifest",
    "paintworklet",
    "report",
    "script",
    "serviceworker",
    "sharedworker",
    "speculationrules",
    "style",
    "track",
    "video",
    "webidentity",
    "worker",
    "xslt",
    "text",
];

impl Gate {
    /// Reads the setting; blank is the default.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "" | "navigations" => Some(Self::Navigations),
            "documents" => Some(Self::Documents),
            "all" => Some(Self::All),
            _ => None,
        }
    }

    /// Whether the request is checked.
    #[must_use]
    pub fn checks(self, facts: &Facts<'_>) -> bool {
        let destination = facts.header("sec-fetch-dest").unwrap_or_default().trim();
        match self {
            Self::Navigations => {
                let navigates = facts.header("sec-fetch-mode").map(str::trim) == Some("navigate");
                matches!(facts.method, "GET" | "HEAD")
                    && (navigates || !SUBRESOURCES.contains(&destination))
            }
            Self::Documents => destination == "document",
            Self::All => true,
        }
    }
}

/// Whether the browser loads the page before anybody asked for it. Such a load must not spend a
/// pass.
pub(super) fn is_speculative(facts: &Facts<'_>) -> bool {
    let says = |name: &str| {
        facts.header(name).is_some_and(|value| {
            let mut words = value.split([';', ',', ' ']);
            words.any(|word| word.get(..8).is_some_and(|w| w.eq_ignore_ascii_case("prefetch")))
        })
    };
    says("sec-purpose") || says("purpose") || says("x-moz")
}
