//! The registry of what can be installed from this server (VER-12 to VER-20): one entry for each
//! connector that has a release built in, with commands that are right for the server asked.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use qm_core::digest::hex;
use serde::Serialize;
use serde_json::{Value, json};

use super::release::{ReleaseFile, newest_files};

/// The registry document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Registry<'a> {
    server_version: &'a str,
    api_version: &'static str,
    connectors: Vec<Entry>,
}

/// One connector. The digests follow the id, so that a text search finds them together (HOL-13).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    id: &'static str,
    sha256: String,
    integrity: String,
    name: &'static str,
    kind: &'static str,
    version: &'static str,
    platform: &'static str,
    install: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    install_pinned: Option<String>,
    self_hosted_install: String,
    /// In no marketplace or package registry (NOD-04).
    published: bool,
    upgrade: String,
    verify_command: String,
    download: String,
    docs: String,
    bytes: usize,
    notes: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileEntry>,
}

#[derive(Debug, Serialize)]
struct FileEntry {
    name: &'static str,
    url: String,
    sha256: String,
    integrity: String,
    bytes: usize,
}

/// What does not change with the version of a connector. In the texts `{server}` is this server's
/// origin, `{url}` the address of the released file, `{integrity}` its digest.
struct Kind {
    id: &'static str,
    name: &'static str,
    kind: &'static str,
    platform: &'static str,
    install: &'static str,
    install_pinned: Option<&'static str>,
    upgrade: &'static str,
    notes: &'static str,
}

const KINDS: [Kind; 5] = [
    Kind {
        id: "snippet",
        name: "qm.js",
        kind: "browser-tag",
        platform: "Any site that takes a script tag",
        install: "<script async src=\"{server}/snippet/qm.js\" data-qm-server=\"{server}\" \
                  data-qm-room=\"<roomId>\"></script>",
        install_pinned: Some(
            "<script async src=\"{server}/snippet/qm.js\" integrity=\"{integrity}\" \
             crossorigin=\"anonymous\" data-qm-server=\"{server}\" \
             data-qm-room=\"<roomId>\"></script>",
        ),
        upgrade: "Nothing to do: the tag follows the server. With installPinned, replace the tag.",
        notes: "One script tag, no build step; served by this server.",
    },
    Kind {
        id: "cloudflare",
        name: "qm-edge",
        kind: "edge-worker",
        platform: "Cloudflare Workers",
        install: "curl -fsSL {server}/connectors/cloudflare/latest.js -o qm-edge.js && \
                  npx wrangler deploy qm-edge.js --name qm-edge --compatibility-date 2025-01-01 \
                  --var QM_SERVER:{server} --var QM_ROOM:<roomId> \
                  --var QM_PUBLIC_API_KEY:<publicApiKey> --route '<your-site>/*'",
        install_pinned: None,
        upgrade: "curl -fsSL {server}/connectors/cloudflare/latest.js -o qm-edge.js && \
                  npx wrangler deploy qm-edge.js --name qm-edge --compatibility-date 2025-01-01 \
                  --keep-vars --route '<your-site>/*'",
        notes: "Checks at the edge, before the origin; queued visitors never reach it.",
    },
    Kind {
        id: "node",
        name: "@queue-manager/node",
        kind: "server-sdk",
        platform: "Node.js >= 18",
        install: "npm install {url}",
        install_pinned: None,
        upgrade: "npm install {url}",
        notes: "Express/Connect/node:http middleware, install-time verify, drift detection.",
    },
    Kind {
        id: "wordpress",
        name: "Queue Manager for WordPress",
        kind: "cms-plugin",
        platform: "WordPress, PHP >= 7.4",
        install: "wp plugin install {url} --activate",
        install_pinned: None,
        upgrade: "wp plugin update queue-manager",
        notes: "Settings page that verifies before it enables; updates from this server.",
    },
    Kind {
        id: "gtm",
        name: "Queue Manager tag template",
        kind: "tag-template",
        platform: "Google Tag Manager, web container",
        install: "curl -fsSL {server}/connectors/gtm/template.tpl -o template.tpl",
        install_pinned: None,
        upgrade: "curl -fsSL {server}/connectors/gtm/template.tpl -o template.tpl",
        notes: "Import under Templates, New, Import; Preview checks the room.",
    },
];

fn integrity(file: &ReleaseFile) -> String {
    format!("sha256-{}", STANDARD.encode(file.sha256))
}

fn entry(server: &str, kind: &Kind) -> Option<Entry> {
    let files: Vec<&ReleaseFile> = newest_files(kind.id).collect();
    let main = *files.first()?;
    let fill = |text: &str| {
        let text = text.replace("{url}", &format!("{server}{}", main.url));
        text.replace("{server}", server).replace("{integrity}", &integrity(main))
    };
    // The Node package's own command checks itself; for others it says which connector asks.
    let connector = match kind.id {
        "node" => String::new(),
        id => format!(" --connector {id}"),
    };
    Some(Entry {
        id: kind.id,
        sha256: hex(&main.sha256),
        integrity: integrity(main),
        name: kind.name,
        kind: kind.kind,
        version: main.version,
        platform: kind.platform,
        install: fill(kind.install),
        install_pinned: kind.install_pinned.map(fill),
        self_hosted_install: fill(kind.install),
        published: false,
        upgrade: fill(kind.upgrade),
        verify_command: format!(
            "npx --yes {server}/connectors/node/latest.tgz verify --server {server} \
             --room <roomId> --origin https://<your-site>{connector} --strict"
        ),
        download: format!("{server}{}", main.latest),
        docs: format!("{server}/docs/integration#installable-connectors"),
        bytes: main.octets.len(),
        notes: kind.notes,
        files: match files.as_slice() {
            [_] => Vec::new(),
            several => several.iter().map(|file| file_entry(server, file)).collect(),
        },
    })
}

fn file_entry(server: &str, file: &ReleaseFile) -> FileEntry {
    FileEntry {
        name: file.name(),
        url: format!("{server}{}", file.url),
        sha256: hex(&file.sha256),
        integrity: integrity(file),
        bytes: file.octets.len(),
    }
}

/// The registry as the server at the origin `server` answers it.
#[must_use]
pub fn registry<'a>(server: &str, server_version: &'a str) -> Registry<'a> {
    let connectors = KINDS.iter().filter_map(|kind| entry(server, kind)).collect();
    Registry { server_version, api_version: "v1", connectors }
}

/// What the WordPress plugin's updater reads (VER-20, HOL-47), once there is a plugin.
#[must_use]
pub fn wordpress_update(server: &str) -> Option<Value> {
    let plugin = newest_files("wordpress").next()?;
    Some(json!({
        "name": "Queue Manager",
        "slug": "queue-manager",
        "version": plugin.version,
        "requires": "5.8",
        "tested": "6.1",
        "requires_php": "7.4",
        "download_url": format!("{server}{}", plugin.url),
        "sha256": hex(&plugin.sha256),
        "last_updated": plugin.released.unwrap_or_default(),
        "sections": {
            "description": "Puts pages of this site behind a Queue Manager waiting room.",
            "changelog": format!("See {server}/docs/connectors"),
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_follows_the_id_in_plain_sight() {
        let document = registry("https://queue.example.com", "1.3.0");
        let text = serde_json::to_string_pretty(&document).unwrap();
        let snippet = text.find("    {\n      \"id\": \"snippet\",\n      \"sha256\": \"").unwrap();
        let rest: Vec<&str> = text[snippet..].lines().skip(3).take(1).collect();
        assert!(rest[0].starts_with("      \"integrity\": \"sha256-"), "{rest:?}");
        assert!(!text.contains("{server}") && !text.contains("{url}"));
    }

    #[test]
    fn the_updater_is_told_what_the_plugin_says() {
        let readme = include_str!("../../../connectors/wordpress/queue-manager/readme.txt");
        let Some(document) = wordpress_update("https://queue.example.com") else { return };
        for (label, name) in [
            ("Requires at least", "requires"),
            ("Tested up to", "tested"),
            ("Requires PHP", "requires_php"),
            ("Stable tag", "version"),
        ] {
            let said = document[name].as_str().unwrap();
            assert!(readme.contains(&format!("\n{label}: {said}\n")), "{label}: {said}");
        }
    }

    #[test]
    fn every_release_has_an_entry() {
        let document = registry("https://queue.example.com", "1.3.0");
        for file in super::super::release::FILES {
            let entry = document.connectors.iter().find(|entry| entry.id == file.connector);
            assert!(entry.is_some(), "{}", file.url);
        }
        let node = document.connectors.iter().find(|entry| entry.id == "node");
        if let Some(node) = node {
            let url = "https://queue.example.com/connectors/node/queue-manager-node-";
            assert_eq!(node.install, format!("npm install {url}{}.tgz", node.version));
        }
    }
}
