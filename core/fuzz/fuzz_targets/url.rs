//! Rules and page addresses, a line each: any rule list that is accepted decides any address, and
//! reads back from what it is written as.
#![no_main]

use libfuzzer_sys::fuzz_target;
use qm_core::target::RuleSet;

fuzz_target!(|text: &str| {
    let (url, rules) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(rules) = RuleSet::parse(rules.lines()) else { return };
    let decision = rules.scope(Some(url));
    let written: Vec<String> = rules.as_written().collect();
    let again = RuleSet::parse(written.iter().map(String::as_str)).expect("what it wrote itself");
    assert_eq!(again.scope(Some(url)).scope, decision.scope);
});
