//! Patterns with `*`, matched in linear time whatever an operator writes: the literal before the
//! first star and the one after the last are anchored, and each one between is searched once from
//! where the previous one ended (leftmost is enough, since a star takes any run). The search is
//! Knuth-Morris-Pratt with its table made when the rule is saved.

use alloc::boxed::Box;
use alloc::vec::Vec;

#[derive(Clone, Debug)]
pub(super) struct Glob {
    head: Box<[u8]>,
    between: Vec<Needle>,
    /// None without a star: the text must equal the head.
    tail: Option<Box<[u8]>>,
}

impl Glob {
    /// Compiles a pattern of ASCII text; `*` is the only special character.
    pub(super) fn compile(pattern: &str) -> Self {
        let pattern = pattern.to_ascii_lowercase();
        let mut parts = pattern.split('*').map(str::as_bytes);
        let head = parts.next().unwrap_or_default().into();
        let tail = parts.next_back().map(Into::into);
        let between = parts.filter(|part| !part.is_empty()).map(Needle::new).collect();
        Self { head, between, tail }
    }

    /// Whether the pattern is the whole of a lower-cased text; adds the steps the search took.
    pub(super) fn matches(&self, text: &[u8], steps: &mut usize) -> bool {
        let Some(rest) = text.strip_prefix(&*self.head) else { return false };
        let Some(tail) = &self.tail else { return rest.is_empty() };
        let Some(mut rest) = rest.strip_suffix(&**tail) else { return false };
        for needle in &self.between {
            match needle.rest_after(rest, steps) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        true
    }
}

#[derive(Clone, Debug)]
struct Needle {
    bytes: Box<[u8]>,
    /// For each prefix, the length of its longest proper prefix that is also its suffix.
    borders: Box<[usize]>,
}

impl Needle {
    fn new(bytes: &[u8]) -> Self {
        let mut needle = Self { bytes: bytes.into(), borders: Box::default() };
        let mut borders: Vec<usize> = Vec::with_capacity(bytes.len());
        let mut matched = 0;
        for byte in bytes {
            if borders.is_empty() {
                borders.push(0);
                continue;
            }
            matched = step(&needle.bytes, &borders, matched, *byte, &mut 0);
            borders.push(matched);
        }
        needle.borders = borders.into();
        needle
    }

    fn rest_after<'a>(&self, text: &'a [u8], steps: &mut usize) -> Option<&'a [u8]> {
        let mut matched = 0;
        for (at, byte) in text.iter().enumerate() {
            matched = step(&self.bytes, &self.borders, matched, *byte, steps);
            if matched == self.bytes.len() {
                return text.get(at + 1..);
            }
        }
        None
    }
}

/// How much of the needle is matched once `byte` follows what was matched before.
fn step(needle: &[u8], borders: &[usize], matched: usize, byte: u8, steps: &mut usize) -> usize {
    let mut matched = matched;
    loop {
        *steps += 1;
        if needle.get(matched) == Some(&byte) {
            return matched + 1;
        }
        match matched.checked_sub(1).and_then(|last| borders.get(last)) {
            Some(border) => matched = *border,
            None => return 0,
        }
    }
}
