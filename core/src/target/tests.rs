//! What may be written as a rule, and that matching stays linear. Decisions are in the vectors.

use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use super::form::Forms;
use super::glob::Glob;
use super::*;

fn problem(rules: &[&str]) -> Option<InvalidRules> {
    RuleSet::parse(rules.iter().copied()).err()
}

#[test]
fn limits() {
    let many: Vec<String> = (0..=RULES_MAX).map(|at| format!("/p{at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(problem(&many[..RULES_MAX]), None);
    assert_eq!(problem(&many), Some(InvalidRules { rule: None, problem: RuleProblem::TooMany }));
    let mut repeated = many[..RULES_MAX].to_vec();
    repeated.push("/p0");
    assert_eq!(problem(&repeated), None, "a repeated rule is kept once");
    for letter in ["a", "ก", "🎟"] {
        let rule = |chars: usize| format!("/{}", letter.repeat(chars - 1));
        assert_eq!(problem(&[&rule(300)]), None, "{letter}");
        assert_eq!(problem(&[&rule(301)]).unwrap().problem, RuleProblem::TooLong, "{letter}");
    }
    assert_eq!(problem(&["/a*b*c*d*e*f*g*h*i*j*"]), None);
    let stars = problem(&["/", "/a*b*c*d*e*f*g*h*i*j*k*"]).unwrap();
    assert_eq!(stars, InvalidRules { rule: Some(1), problem: RuleProblem::TooManyWildcards });
    assert_eq!(format!("{stars}"), "rule 2: at most 10 *");
}

#[test]
fn spellings() {
    use RuleProblem::{ControlCharacter, Fragment, Host, NoPath, PlainHttp, Start};
    for (rule, expected) in [
        ("/", None),
        ("!/x", None),
        ("*", None),
        ("/(x[y$|a\\d+.?", None),
        ("https://shop.example.com/x", None),
        ("!HTTPS://shop.example.com:8443/*", None),
        ("", Some(Start)),
        ("!", Some(Start)),
        ("!!/x", Some(Start)),
        ("   ", Some(Start)),
        (" /x", Some(Start)),
        ("checkout", Some(Start)),
        ("ftp://shop.example.com/", Some(Start)),
        ("javascript:x", Some(Start)),
        ("http://shop.example.com/x", Some(PlainHttp)),
        ("https://shop.example.com", Some(NoPath)),
        ("https://shop.example.com*", Some(NoPath)),
        ("https://*.example.com/x", Some(Host)),
        ("https://a@shop.example.com/x", Some(Host)),
        ("https://shop.example.com?x/", Some(Host)),
        ("https:///x", Some(Host)),
        ("https://shop example.com/x", Some(Host)),
        ("/#/checkout*", Some(Fragment)),
        ("/a\u{7}b", Some(ControlCharacter)),
        ("/a\n", Some(ControlCharacter)),
    ] {
        assert_eq!(problem(&[rule]).map(|invalid| invalid.problem), expected, "{rule:?}");
    }
}

#[test]
fn listing() {
    let rules = RuleSet::parse(["/a*", "!/a/b", "/a*", "!/a*", "/A*"]).unwrap();
    assert_eq!(
        rules.iter().collect::<Vec<_>>(),
        [
            ("/a*", Action::Queue),
            ("/a/b", Action::Ignore),
            ("/a*", Action::Ignore),
            ("/A*", Action::Queue)
        ]
    );
    assert_eq!(rules.as_written().collect::<Vec<_>>(), ["/a*", "!/a/b", "!/a*", "/A*"]);
    assert_eq!((rules.len(), rules.is_empty()), (4, false));
    assert!(RuleSet::parse([]).unwrap().is_empty());
}

/// The slow and obvious meaning of a pattern.
fn matches_by_definition(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            (0..=text.len()).any(|skip| matches_by_definition(rest, &text[skip..]))
        }
        (Some((a, pattern)), Some((b, text))) => a == b && matches_by_definition(pattern, text),
        _ => false,
    }
}

/// All words of these letters up to that length.
fn words(letters: &[char], length: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..length {
        let to = all.len();
        for at in from..to {
            all.extend(
                letters.iter().map(|letter| format!("{}{letter}", all[at])).collect::<Vec<_>>(),
            );
        }
        from = to;
    }
    all
}

#[test]
fn globs_mean_what_they_say() {
    let texts = words(&['a', 'b'], 6);
    for pattern in words(&['a', 'b', '*'], 5) {
        let glob = Glob::compile(&pattern);
        for text in &texts {
            assert_eq!(
                glob.matches(text.as_bytes(), &mut 0),
                matches_by_definition(pattern.as_bytes(), text.as_bytes()),
                "{pattern} {text}"
            );
        }
    }
}

#[test]
fn worst_cases_are_linear() {
    let path = format!("https://h.example/{}", "a".repeat(4000));
    let forms = Forms::of(&PageUrl::parse(&path).unwrap());
    let text = forms.for_inclusions().next().unwrap().text(false);
    for pattern in [
        "/*a*a*a*a*a*a*a*a*a*b".into(),
        format!("/*{}b*", "a".repeat(290)),
        format!("/*b{}*", "a".repeat(290)),
        format!("/{}", "*aaaaaaaaaaaaaaaaaaaaaaaaaaaab".repeat(9)),
        format!("/*{}*", "ab".repeat(140)),
    ] {
        let rule = Rule::parse(&pattern).unwrap();
        let mut steps = 0;
        assert!(!rule.matches_counted(text, &mut steps), "{pattern}");
        assert!(steps <= 2 * text.len(), "{pattern}: {steps} steps");
    }
}

#[test]
fn forms_are_made_once() {
    let count = |url: &str| Forms::of(&PageUrl::parse(url).unwrap()).for_inclusions().count();
    for (url, expected) in [
        ("https://h.example/a/b?c=%20", 1),
        ("https://h.example/%61", 2),
        ("https://h.example//a", 2),
        ("https://h.example/a?b=%61", 2),
        ("https://h.example/a?b=//c", 1),
        ("https://h.example/a;b", 2),
        ("https://h.example//a;b", 3),
        ("https://h.example/a%2Fb", 1),
        ("https://h.example/a/..%2Fb", 2),
    ] {
        assert_eq!(count(url), expected, "{url}");
    }
}
