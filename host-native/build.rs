//! Writes the table of the connector files this server hands out, from the committed releases:
//! `connectors/releases/digests.json` names them, and a file that does not have the digest recorded
//! there stops the build. The table is included by `src/connector/release.rs`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

fn main() {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../connectors/releases");
    let root = root.canonicalize().expect("connectors/releases is part of the repository");
    let record = root.join("digests.json");
    watch(&record);
    let text = fs::read_to_string(&record).expect("digests.json can be read");
    let record: Value = serde_json::from_str(&text).expect("digests.json is JSON");
    let mut table = String::from("&[\n");
    for release in list(&record, "releases") {
        for file in list(release, "files") {
            write_file(&mut table, &root, release, file);
        }
    }
    table.push(']');
    let out = Path::new(&variable("OUT_DIR")).join("releases.rs");
    fs::write(out, table).expect("OUT_DIR can be written");
}

fn write_file(table: &mut String, root: &Path, release: &Value, file: &Value) {
    let path = root.join(text(file, "file"));
    watch(&path);
    let octets = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let digest: [u8; 32] = Sha256::digest(&octets).into();
    let hex: String = digest.iter().map(|octet| format!("{octet:02x}")).collect();
    let recorded = text(file, "sha256");
    assert_eq!(hex, recorded, "{}: not the bytes that were released", path.display());
    writeln!(
        table,
        "ReleaseFile {{ connector: {:?}, version: {:?}, released: {:?}, url: {:?}, latest: {:?}, \
         sha256: {digest:?}, octets: include_bytes!({:?}) }},",
        text(release, "id"),
        text(release, "version"),
        release.get("released").and_then(Value::as_str),
        text(file, "url"),
        text(file, "latest"),
        path.display().to_string(),
    )
    .expect("a String can be written");
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).expect("digests.json has its lists")
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).expect("digests.json has its texts")
}

fn variable(name: &str) -> String {
    env::var(name).expect("cargo sets it")
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}
