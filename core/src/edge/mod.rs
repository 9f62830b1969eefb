//! The door as a connector keeps it, between visitor, origin and queue server: which requests are
//! checked, what the server is asked, and what its answer makes of the request. A state machine
//! without IO: [`Edge::plan`] and [`Edge::conclude`] say the next [`Step`], the host takes it.
//! Whatever a visitor sends queues at worst; only a measured outage or a wrong setting lets
//! everybody pass, and that is told in a header and a [`Note`].

mod answer;
mod ask;
mod gate;
mod page;
mod rules;
mod settings;
mod show;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use crate::address::{Address, Forwarding, TrustProxy, client_address, cloudflare_address};
use crate::reply::Reply;
use crate::time::TimeMs;
use page::Page;
use rules::Known;
use show::Candidate;

pub use answer::Answer;
pub use ask::{Query, failed_checks};
pub use gate::Gate;
pub use settings::{Settings, Written};

/// The milliseconds all questions about one request may take together (CFW-09).
pub const BUDGET_MS: u32 = 2000;

/// The longest answer read; what is longer is no answer.
pub const ANSWER_BYTES_MAX: usize = 65_536;

/// Names the outage that let a visitor pass (CFW-14). Set by connectors alone: a host removes it
/// from requests and from the origin's answers.
pub const FAILOVER_HEADER: &str = "x-qm-failover";

/// The request headers [`Facts`] are read from.
pub const HEADERS_READ: [&str; 10] = [
    "cookie",
    "user-agent",
    "sec-fetch-dest",
    "sec-fetch-mode",
    "sec-purpose",
    "purpose",
    "x-moz",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "x-forwarded-for",
];

/// A visitor's request.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The method, in upper case.
    pub method: &'a str,
    /// The absolute address, on the site's public origin.
    pub url: &'a str,
    /// Headers by lower-case name; several of one name joined by `, `, cookies by `; `.
    pub headers: &'a [(&'a str, &'a str)],
    /// The socket's peer, where there is a socket.
    pub peer: Option<IpAddr>,
    /// The visitor's address as the site's own code knows it; it wins over everything else.
    pub address: Option<&'a str>,
}

impl Facts<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| *value)
    }
}

/// What a host does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The request goes to the origin.
    Forward(Forward),
    /// The visitor is answered.
    Respond(Respond),
    /// The queue server is asked, without following redirects.
    Ask(Ask),
}

/// How a request goes to the origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forward {
    /// The value of [`FAILOVER_HEADER`] on the answer.
    pub failover: Option<String>,
    /// The address to forward to, where it differs: without the pass.
    pub url: Option<String>,
    /// Values of `Set-Cookie` to add to the answer, whatever its status.
    pub cookies: Vec<String>,
    /// What to log and count.
    pub note: Option<Note>,
    /// A door key the server just issued, for hosts that remember (NOD-17).
    pub door_key: Option<String>,
}

/// What a visitor is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Respond {
    /// The answer.
    pub reply: Reply,
    /// What to log and count.
    pub note: Option<Note>,
    /// As in [`Forward`].
    pub door_key: Option<String>,
}

/// A question to the queue server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// What to fetch.
    pub query: Query,
    /// What [`Edge::conclude`] needs to know again.
    pub pending: Pending,
}

/// A line for the log, and what kind of thing happened for counters. No line has a visitor's
/// token, address or page in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// What happened.
    pub kind: NoteKind,
    /// The line.
    pub text: String,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// A visitor passed because the server did not answer.
    Failover,
    /// A visitor passed because the server refuses our key: the room is open (SRV-04).
    KeyRefused,
    /// A visitor passed because the settings cannot work.
    Misconfigured,
    /// The server sheds load; visitors queue.
    Busy,
    /// The server knows no such room; visitors pass.
    NoRoom,
    /// The request came without an address of a visitor; it queues.
    NoVisitor,
}

/// A check under way. Hosts keep it between question and answer and look at nothing but
/// [`Pending::door_key`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// The page without the pass; `None` when it has no readable address.
    page: Option<String>,
    /// The page's address had a `qm_token`.
    had_token: bool,
    /// A redirect loses nothing.
    is_safe: bool,
    is_https: bool,
    /// What the question shows, then what is still to be shown.
    asked: Option<Candidate>,
    left: Vec<Candidate>,
    /// Cookies that are no use were sent, or the server said so of one.
    clear: bool,
    /// The page's query was cut from the question.
    was_cut: bool,
    omit_url: bool,
    ip: Option<String>,
    agent: String,
    /// The door key sent along, unvouched only.
    pub door_key: Option<String>,
}

/// A room's door at the edge: the settings and the rules last learned.
#[derive(Clone, Debug)]
pub struct Edge {
    settings: Result<Settings, String>,
    gate: Gate,
    rules: Known,
}

impl Edge {
    /// Reads settings; the list tells what is wrong with them.
    #[must_use]
    pub fn new(written: &Written<'_>) -> (Self, Vec<String>) {
        let (settings, faults) = Settings::read(written);
        let gate = Gate::parse(written.gate).unwrap_or_default();
        let settings = settings.ok_or_else(|| faults.join("; "));
        (Self { settings, gate, rules: Known::default() }, faults)
    }

    /// The settings, if they work.
    #[must_use]
    pub fn settings(&self) -> Option<&Settings> {
        self.settings.as_ref().ok()
    }

    /// The first step for a request.
    #[must_use]
    pub fn plan(&self, facts: &Facts<'_>, now: TimeMs) -> Step {
        if !self.gate.checks(facts) {
            return Step::Forward(Forward::default());
        }
        let settings = match &self.settings {
            Ok(settings) => settings,
            Err(faults) => return misconfigured(faults),
        };
        let page = Page::read(facts.url);
        let is_queue = page.as_ref().is_some_and(|page| page.is_on_host_of(&settings.server));
        if settings.passes_server_host && is_queue {
            return Step::Forward(Forward::default());
        }
        let shown = show::read(settings, facts, page.as_ref(), now);
        let brings_pass = shown.candidates.first().is_some_and(|first| first.from_url);
        if brings_pass && (gate::is_speculative(facts) || facts.method == "HEAD") {
            return respond(Reply::empty(503), None);
        }
        if !brings_pass && page.as_ref().is_some_and(|page| self.rules.skips(page, now)) {
            return Step::Forward(Forward::default());
        }
        let address = match visitor(settings, facts) {
            Visitor::Known(address) => Some(address),
            Visitor::Platform => None,
            Visitor::Unknown => {
                return misconfigured("the visitor's address is missing: is this the first hop?");
            }
        };
        let mut pending = Pending {
            page: page.as_ref().map(|page| page.as_str().to_string()),
            had_token: page.as_ref().is_some_and(|page| !page.tokens.is_empty()),
            is_safe: matches!(facts.method, "GET" | "HEAD"),
            is_https: page.as_ref().is_some_and(Page::is_https),
            asked: None,
            left: shown.candidates,
            clear: shown.useless_cookies,
            was_cut: false,
            omit_url: false,
            ip: address.map(|address| address.to_string()),
            agent: facts.header("user-agent").unwrap_or_default().to_string(),
            door_key: shown.door_key,
        };
        if settings.key.is_some() && address.is_none() {
            let text = "a request came from the platform itself, not from a visitor: it queues";
            return answer::to_waiting(settings, &pending, None, note(NoteKind::NoVisitor, text));
        }
        let is_known_false = shown.refused_locally && pending.left.is_empty();
        if is_known_false && self.rules.surely_includes(page.as_ref(), now) {
            return answer::to_waiting(settings, &pending, None, None);
        }
        pending.show_next();
        Step::Ask(ask::check(settings, pending))
    }

    /// The step after the server answered, or did not. `key_is_fresh`: the host saw the door key
    /// of [`Pending::door_key`] issued within half an hour (NOD-17).
    #[must_use]
    pub fn conclude(&self, pending: Pending, answer: &Answer<'_>, key_is_fresh: bool) -> Step {
        match &self.settings {
            Ok(settings) => answer::conclude(settings, pending, answer, key_is_fresh),
            Err(faults) => misconfigured(faults),
        }
    }

    /// The question for the room's rules, when it is time to ask it; the next one is due later.
    pub fn rules_query(&mut self, now: TimeMs) -> Option<Query> {
        let settings = self.settings.as_ref().ok()?;
        let etag = self.rules.ask_when_due(now)?;
        Some(ask::rules(settings, etag.as_deref()))
    }

    /// Learns the answer to [`Edge::rules_query`].
    pub fn learn_rules(&mut self, status: u16, etag: Option<&str>, body: &str, now: TimeMs) {
        self.rules.learn(status, etag, body, now);
    }

    /// The question whether this installation is right (CFW-15), for the page's site.
    #[must_use]
    pub fn verify_query(&self, url: &str, connector: &str, version: &str) -> Option<Query> {
        let settings = self.settings.as_ref().ok()?;
        let origin = Page::read(url).map(|page| page.origin());
        Some(ask::verify(settings, origin.as_deref(), connector, version))
    }
}

impl Pending {
    /// Moves on to the next thing to show; with none left, the check goes without.
    fn show_next(&mut self) {
        self.asked = (!self.left.is_empty()).then(|| self.left.remove(0));
    }
}

/// Whom a request comes from.
enum Visitor {
    Known(Address),
    /// The platform's own address stands in the visitor's place.
    Platform,
    Unknown,
}

fn visitor(settings: &Settings, facts: &Facts<'_>) -> Visitor {
    // What the site's own code gives may come from a header: an unusable one opens nothing.
    if let Some(address) = facts.address.and_then(Address::parse_voucher) {
        return Visitor::Known(address);
    }
    let forwarding = Forwarding {
        peer: facts.peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        forwarded_for: facts.header("x-forwarded-for"),
        cf_ip: facts.header("cf-connecting-ip"),
        cf_ipv6: facts.header("cf-connecting-ipv6"),
    };
    if settings.trust_proxy == TrustProxy::Cloudflare && facts.peer.is_none() {
        return match (cloudflare_address(&forwarding), forwarding.cf_ip) {
            (Some(address), _) => Visitor::Known(address),
            (None, Some(_)) => Visitor::Platform,
            (None, None) => Visitor::Unknown,
        };
    }
    if facts.peer.is_none() {
        return if settings.key.is_none() { Visitor::Platform } else { Visitor::Unknown };
    }
    Visitor::Known(client_address(settings.trust_proxy, &forwarding))
}

fn misconfigured(faults: &str) -> Step {
    Step::Forward(Forward {
        failover: Some("unreachable".into()),
        note: note(NoteKind::Misconfigured, &format!("everybody passes: {faults}")),
        ..Forward::default()
    })
}

fn note(kind: NoteKind, text: &str) -> Option<Note> {
    Some(Note { kind, text: text.to_string() })
}

fn respond(reply: Reply, note: Option<Note>) -> Step {
    Step::Respond(Respond { reply, note, door_key: None })
}

fn redirect(location: String) -> Reply {
    let mut reply = Reply::empty(302);
    reply.headers.splice(0..0, vec![("location", location.into())]);
    reply
}
