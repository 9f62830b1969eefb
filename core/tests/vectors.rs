//! Runs the vector files: the embedded ones of `core/vectors`, or those found in the folder named
//! by `QM_VECTORS`, so that anybody's files can be run against this implementation.

#[path = "common/vectors.rs"]
mod checks;

use std::path::Path;

fn run(name: &str, embedded: &str, check: fn(&str) -> Result<usize, String>) {
    let text = match std::env::var("QM_VECTORS") {
        Ok(folder) => std::fs::read_to_string(Path::new(&folder).join(name))
            .unwrap_or_else(|e| panic!("{folder}/{name}: {e}")),
        Err(_) => embedded.to_owned(),
    };
    let ran = check(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(ran > 0, "{name} has no cases");
    report(name, ran);
}

#[expect(clippy::print_stderr, reason = "the count is what the test reports")]
fn report(name: &str, ran: usize) {
    eprintln!("{name}: {ran} cases");
}

#[test]
fn token() {
    run("token.json", include_str!("../vectors/token.json"), checks::check_token);
}

#[test]
fn targeting() {
    run("targeting.json", include_str!("../vectors/targeting.json"), checks::check_targeting);
}

#[test]
fn jitter() {
    run("jitter.json", include_str!("../vectors/jitter.json"), checks::check_jitter);
}
