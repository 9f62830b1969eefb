//! Reads a door check and settles what needs no place: bypass, scope, refused origins and what a
//! visitor may not send. Bad input of a visitor never opens a door: whatever is unclear queues.

use alloc::borrow::Cow;

use url::form_urlencoded;

use crate::address::Address;
use crate::id::{InvalidRoomId, RoomId};
use crate::room::Settings;
use crate::target::{Scope, ScopeDecision};
use crate::url::{Origin, PageUrl};

/// The query of a check, read once. A repeated control parameter keeps its first value and marks
/// the check as ambiguous.
#[derive(Clone, Debug, Default)]
pub struct CheckQuery<'a> {
    room: Option<Cow<'a, str>>,
    /// `token=`.
    pub token: Option<Cow<'a, str>>,
    /// `ip=`: a connector vouches for this address.
    pub ip: Option<Cow<'a, str>>,
    /// `agent=`: the visitor's User-Agent.
    pub agent: Option<Cow<'a, str>>,
    /// `sess=`: the door key, where no header carries it.
    pub sess: Option<Cow<'a, str>>,
    /// `url=`: the page being opened.
    pub url: Option<Cow<'a, str>>,
    /// `targeting=1`: the answer lists the rules.
    pub wants_rules: bool,
    /// `key=` was sent: a credential where none is accepted (AUT-07).
    pub has_key: bool,
    /// A control parameter came twice.
    pub is_ambiguous: bool,
}

impl<'a> CheckQuery<'a> {
    /// Reads the query part of a request target.
    #[must_use]
    pub fn parse(query: &'a str) -> Self {
        let mut read = Self::default();
        let mut targeting: Option<Cow<'a, str>> = None;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let slot = match name.as_ref() {
                "roomId" => {
                    // The first well-formed one names the room.
                    let better = read.room.as_deref().is_some_and(|id| RoomId::parse(id).is_err());
                    read.is_ambiguous |= read.room.is_some();
                    if read.room.is_none() || better {
                        read.room = Some(value);
                    }
                    continue;
                }
                "token" => &mut read.token,
                "ip" => &mut read.ip,
                "agent" => &mut read.agent,
                "sess" => &mut read.sess,
                "url" => &mut read.url,
                "targeting" => &mut targeting,
                "key" => {
                    read.has_key = true;
                    continue;
                }
                _ => continue,
            };
            if slot.is_some() {
                read.is_ambiguous = true;
            } else {
                *slot = Some(value);
            }
        }
        read.wants_rules = targeting.as_deref() == Some("1");
        read
    }

    /// The room asked about.
    ///
    /// # Errors
    /// [`InvalidRoomId`] when none is named or no room can have that id (HOL-48).
    pub fn room(&self) -> Result<RoomId, InvalidRoomId> {
        RoomId::parse(self.room.as_deref().unwrap_or_default())
    }

    /// Whether a connector vouches, well or badly.
    #[must_use]
    pub const fn vouches(&self) -> bool {
        self.ip.is_some() || self.agent.is_some()
    }

    /// The address vouched for; `None` when it is no usable one (C041).
    #[must_use]
    pub fn vouched_address(&self) -> Option<Address> {
        self.ip.as_deref().and_then(Address::parse_voucher)
    }
}

/// What stands around the place at the door.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The room's settings.
    pub settings: &'a Settings,
    /// The check.
    pub query: &'a CheckQuery<'a>,
    /// The `Origin` header.
    pub origin: Option<&'a str>,
    /// The `Referer` header.
    pub referer: Option<&'a str>,
}

/// What a check comes to before any place is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Passes without a place, for this reason.
    Pass(&'static str),
    /// Queues without looking at the place, for this reason.
    Queue(&'static str),
    /// The place decides.
    AskPlace,
}

/// What the gate settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// What the check comes to.
    pub gate: Gate,
    /// The scope of the page, unless the request was too unclear to have one.
    pub scope: Option<ScopeDecision>,
    /// Who may read the answer.
    pub readers: Option<Cow<'static, str>>,
    /// The browser's origin may not read the answer: such a check opens nothing, and is counted.
    pub is_origin_refused: bool,
}

/// Settles the check as far as no place is needed. The caller has verified the key of a vouched
/// check. Origins are read once here: every check of a tag carries one.
#[must_use]
pub fn settle(around: &Surroundings<'_>, is_bypass: bool) -> Settled {
    let readers = allowed_origin(around.settings, around.origin);
    let is_origin_refused = !around.query.vouches() && around.origin.is_some() && readers.is_none();
    let (gate, scope) = decide(around, is_bypass, is_origin_refused);
    Settled { gate, scope, readers, is_origin_refused }
}

fn decide(
    around: &Surroundings<'_>,
    is_bypass: bool,
    is_origin_refused: bool,
) -> (Gate, Option<ScopeDecision>) {
    let query = around.query;
    if is_bypass {
        return (Gate::Pass("bypass"), Some(scope(around)));
    }
    if query.is_ambiguous {
        return (Gate::Queue("ambiguous_request"), None);
    }
    if query.vouches() && query.vouched_address().is_none() {
        return (Gate::Queue("invalid_voucher"), None);
    }
    let scope = scope(around);
    let gate = if scope.scope == Scope::Out {
        Gate::Pass("out_of_scope")
    } else if is_origin_refused {
        Gate::Queue("origin_not_allowed")
    } else {
        Gate::AskPlace
    };
    (gate, Some(scope))
}

/// The scope of the page being opened (CHK-29 to CHK-31).
#[must_use]
pub fn scope(around: &Surroundings<'_>) -> ScopeDecision {
    let page = match around.query.url.as_deref() {
        Some(url) => Some(url),
        None => around.referer.filter(|referer| tells_page(referer)),
    };
    let decision = around.settings.url_patterns.scope(page);
    let unproven = around.query.vouches()
        && decision.scope == Scope::Out
        && !around.settings.names_no_site()
        && !page.and_then(PageUrl::parse).is_some_and(|page| is_known_site(around.settings, &page));
    if unproven {
        // A connector that runs on a site the room does not know may not wave visitors past.
        return ScopeDecision { scope: Scope::Unknown, rule: None };
    }
    decision
}

/// A Referer cut to its origin proves nothing about the page.
fn tells_page(referer: &str) -> bool {
    PageUrl::parse(referer).is_some_and(|page| page.path().len() > 1)
}

fn is_known_site(settings: &Settings, page: &PageUrl) -> bool {
    let lists = settings.known_origins().into_iter().chain(settings.known_tag_origins());
    lists.into_iter().any(|origin| page.is_at(&origin))
}

/// Who may read the answer of a check, a join or a status (CHK-16, ORI-09, HOL-58).
#[must_use]
pub fn allowed_origin(settings: &Settings, origin: Option<&str>) -> Option<Cow<'static, str>> {
    if settings.names_no_site() {
        return Some("*".into());
    }
    let origin = Origin::from_header(origin?)?;
    settings.tag_origin_allowed(&origin).then(|| Cow::Owned(origin.as_str().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::patch::Patch;
    use crate::time::TimeMs;

    fn settings(body: &str) -> Settings {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let patch = Patch::parse(body.as_object().unwrap()).unwrap();
        let room = RoomId::parse("shop").unwrap();
        patch.apply(&Settings::new(&room, TimeMs(0)), TimeMs(1)).unwrap()
    }

    fn gate(settings: &Settings, query: &str, origin: Option<&str>, referer: Option<&str>) -> Gate {
        let query = CheckQuery::parse(query);
        settle(&Surroundings { settings, query: &query, origin, referer }, false).gate
    }

    const SITE: &str = r#"{"targetUrl":"https://shop.example.com/","urlPatterns":["/checkout*"]}"#;

    #[test]
    fn what_is_settled_at_the_gate() {
        let site = settings(SITE);
        for (query, origin, referer, expected) in [
            ("url=https://shop.example.com/a", None, None, Gate::Pass("out_of_scope")),
            ("url=https://shop.example.com/checkout", None, None, Gate::AskPlace),
            ("url=/a", None, None, Gate::AskPlace),
            ("url=", None, Some("https://shop.example.com/a"), Gate::AskPlace),
            ("", None, Some("https://shop.example.com/a"), Gate::Pass("out_of_scope")),
            ("", None, Some("https://shop.example.com/"), Gate::AskPlace),
            ("url=x&url=x", None, None, Gate::Queue("ambiguous_request")),
            ("token=a&token=a", None, None, Gate::Queue("ambiguous_request")),
            ("ip=1.2.3", None, None, Gate::Queue("invalid_voucher")),
            ("agent=x", None, None, Gate::Queue("invalid_voucher")),
            ("ip=192.0.2.1&url=https://evil.example/a", None, None, Gate::AskPlace),
            ("ip=192.0.2.1&url=https://shop.example.com/a", None, None, Gate::Pass("out_of_scope")),
            ("", Some("https://evil.example"), None, Gate::Queue("origin_not_allowed")),
            ("", Some("null"), None, Gate::Queue("origin_not_allowed")),
            ("", Some("https://shop.example.com"), None, Gate::AskPlace),
        ] {
            assert_eq!(gate(&site, query, origin, referer), expected, "{query} {origin:?}");
        }
    }

    #[test]
    fn the_first_well_formed_room_counts() {
        for (query, room, ambiguous) in [
            ("roomId=a", Some("a"), false),
            ("roomId=a%20b&roomId=c", Some("c"), true),
            ("roomId=a&roomId=b", Some("a"), true),
            ("roomId=", None, false),
            ("", None, false),
        ] {
            let read = CheckQuery::parse(query);
            assert_eq!(read.room().ok().as_ref().map(RoomId::as_str), room, "{query}");
            assert_eq!(read.is_ambiguous, ambiguous, "{query}");
        }
    }

    #[test]
    fn a_room_without_sites_is_open_to_every_origin() {
        let open = settings("{}");
        assert_eq!(allowed_origin(&open, Some("https://any.example")).as_deref(), Some("*"));
        assert_eq!(gate(&open, "", Some("https://any.example"), None), Gate::AskPlace);
    }
}
