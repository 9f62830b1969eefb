//! The connector files built into this binary, as `connectors/releases/digests.json` records them:
//! every version ever released, each under an address whose bytes never change (VER-23).

use std::cmp::Ordering;

/// One file of one released version.
#[derive(Debug)]
pub struct ReleaseFile {
    /// The registry id of the connector.
    pub connector: &'static str,
    /// The connector's version.
    pub version: &'static str,
    /// The day of the release, once there is one.
    pub released: Option<&'static str>,
    /// The path of exactly these bytes.
    pub url: &'static str,
    /// The path that always names the newest version's file of this kind.
    pub latest: &'static str,
    /// The SHA-256 of the bytes.
    pub sha256: [u8; 32],
    /// The bytes.
    pub octets: &'static [u8],
}

impl ReleaseFile {
    /// The name of the file, with its version.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.url.rsplit_once('/').map_or(self.url, |(_, name)| name)
    }
}

/// Every file of every release.
pub static FILES: &[ReleaseFile] = include!(concat!(env!("OUT_DIR"), "/releases.rs"));

/// The newest version of a connector, if this server ships that connector.
#[must_use]
pub fn newest_version(connector: &str) -> Option<&'static str> {
    let versions = FILES.iter().filter(|file| file.connector == connector).map(|f| f.version);
    versions.max_by(|a, b| compare_versions(a, b))
}

/// The files of the newest version of a connector, the main one first.
pub fn newest_files(connector: &str) -> impl Iterator<Item = &'static ReleaseFile> {
    let newest = newest_version(connector);
    FILES.iter().filter(move |file| file.connector == connector && Some(file.version) == newest)
}

/// The file at a versioned path.
#[must_use]
pub fn at_version(path: &str) -> Option<&'static ReleaseFile> {
    FILES.iter().find(|file| file.url == path)
}

/// The file that a `latest` path names now.
#[must_use]
pub fn at_latest(path: &str) -> Option<&'static ReleaseFile> {
    let files = FILES.iter().filter(|file| file.latest == path);
    files.max_by(|a, b| compare_versions(a.version, b.version))
}

/// The order of two versions of numbers and dots; what is no number is older than any.
#[must_use]
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<Option<u64>> {
        text.split('.').map(|part| part.parse().ok()).collect()
    };
    numbers(a).cmp(&numbers(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_number() {
        for (a, b, expected) in [
            ("1.3.1", "1.3.1", Ordering::Equal),
            ("1.3.1", "1.10.0", Ordering::Less),
            ("2.0.0", "1.99.99", Ordering::Greater),
            ("0.0.1", "1.0.0", Ordering::Less),
            ("x", "0.0.0", Ordering::Less),
            ("1.3", "1.3.0", Ordering::Less),
        ] {
            assert_eq!(compare_versions(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn addresses_are_unique_and_name_their_version() {
        for file in FILES {
            assert_eq!(FILES.iter().filter(|other| other.url == file.url).count(), 1);
            assert!(file.name().contains(file.version), "{}", file.url);
            assert_ne!(file.url, file.latest);
            assert_eq!(at_version(file.url).map(|found| found.octets), Some(file.octets));
            let newest = at_latest(file.latest).map(|found| found.version);
            assert_eq!(newest, newest_version(file.connector));
        }
        assert!(at_version("/connectors/node/latest.tgz").is_none());
        assert!(at_latest("/connectors/node/../latest.tgz").is_none());
    }
}
