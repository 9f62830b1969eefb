//! The points of a verification (VER-01 to VER-11, HOL-40): what would keep an installation from
//! working, told before it goes live. It reads settings only: nothing is counted or changed.

use std::cmp::Ordering;

use qm_core::id::RoomId;
use qm_core::room::Settings;
use qm_core::room::config::RoomState;
use qm_core::target::Scope;
use qm_core::url::{Origin, PageUrl};
use serde_json::{Map, Value};

use super::release::{compare_versions, newest_version};

/// How a point came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As it should be.
    Pass,
    /// The installation would not work.
    Fail,
    /// It works, but probably not as meant.
    Warn,
    /// Good to know.
    Info,
}

impl Status {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Warn => "warn",
            Self::Info => "info",
        }
    }
}

/// One point of a verification.
#[derive(Clone, Debug)]
pub struct Check {
    /// One of the ids of HOL-40.
    pub id: &'static str,
    /// How it came out.
    pub status: Status,
    title: String,
    detail: Option<&'static str>,
    fix: Option<String>,
}

impl Check {
    fn new(id: &'static str, status: Status, title: impl Into<String>) -> Self {
        Self { id, status, title: title.into(), detail: None, fix: None }
    }

    const fn detail(mut self, detail: &'static str) -> Self {
        self.detail = Some(detail);
        self
    }

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// The point as answers list it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut check = Map::new();
        check.insert("id".into(), self.id.into());
        check.insert("status".into(), self.status.as_str().into());
        check.insert("title".into(), self.title.as_str().into());
        if let Some(detail) = self.detail {
            check.insert("detail".into(), detail.into());
        }
        if let Some(fix) = &self.fix {
            check.insert("fix".into(), fix.as_str().into());
        }
        check.into()
    }
}

/// The site an installation is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Site {
    /// None was named.
    Unnamed,
    /// What was named is no site's origin.
    Unusable,
    /// This one.
    Named(Origin),
}

impl Site {
    /// `origin` wins, then the origin of `url`, then the browser's own header (VER-02).
    #[must_use]
    pub fn find(origin: Option<&str>, url: Option<&str>, header: Option<&str>) -> Self {
        if let Some(text) = origin.filter(|text| !text.is_empty()) {
            return Origin::parse(text).map_or(Self::Unusable, Self::Named);
        }
        let named = match url.filter(|text| !text.is_empty()) {
            Some(url) => PageUrl::parse(url).map(|page| page.origin()),
            None => header.and_then(Origin::from_header),
        };
        named.map_or(Self::Unnamed, Self::Named)
    }
}

/// A Public API key as the verification saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyShown {
    /// None was sent.
    None,
    /// In the URL, where it gets logged (VER-03).
    InQuery,
    /// It is one of the server's.
    Right,
    /// It is none of the server's.
    Wrong,
}

/// What is verified.
#[derive(Clone, Debug)]
pub struct Inquiry<'a> {
    /// The room asked about.
    pub room: &'a RoomId,
    /// The site.
    pub site: Site,
    /// A page of it.
    pub url: Option<&'a str>,
    /// The connector's registry id.
    pub connector: Option<&'a str>,
    /// The connector's version.
    pub version: Option<&'a str>,
    /// The key.
    pub key: KeyShown,
    /// The version of this server.
    pub server_version: &'a str,
    /// Whether visitors reach this server over https.
    pub server_is_https: bool,
}

/// All points; `settings` are those of the room, if it exists.
#[must_use]
pub fn checks(inquiry: &Inquiry<'_>, settings: Option<&Settings>) -> Vec<Check> {
    let mut checks = Vec::new();
    let id = inquiry.room;
    if let Some(settings) = settings {
        checks.push(Check::new("room_exists", Status::Pass, format!("room \"{id}\" exists")));
        checks.push(state(settings));
        let may_read = tag_origin(&inquiry.site, settings);
        let is_open = may_read.status != Status::Fail;
        checks.push(may_read);
        checks.push(return_policy(settings));
        if is_open && let Site::Named(origin) = &inquiry.site {
            checks.push(return_origin(origin, settings));
        }
        checks.extend(inquiry.url.map(|url| url_scope(url, &inquiry.site, settings)));
    } else {
        let title = format!("there is no room \"{id}\" on this server");
        let check = Check::new("room_exists", Status::Fail, title);
        checks.push(
            check
                .detail("pages of an unknown room are open to everybody")
                .fix("use a room id as the console shows it, in the same case"),
        );
    }
    checks.push(public_key(inquiry.key));
    checks.extend(inquiry.connector.map(|id| connector_version(id, inquiry.version)));
    let server = format!("server {}, API v1", inquiry.server_version);
    checks.push(Check::new("server_version", Status::Info, server));
    checks.extend(https(inquiry));
    checks
}

fn state(settings: &Settings) -> Check {
    let (status, title) = match settings.state {
        RoomState::Active => (Status::Pass, "the room is active"),
        RoomState::Paused => (Status::Warn, "the room is paused: visitors queue, nobody passes"),
        RoomState::Bypass => (Status::Warn, "the room is in bypass: everybody passes"),
    };
    Check::new("room_state", status, title)
}

fn tag_origin(site: &Site, settings: &Settings) -> Check {
    const ID: &str = "tag_origin";
    match site {
        Site::Unnamed => {
            Check::new(ID, Status::Info, "no site was named, so its origin was not checked")
                .fix("send origin=https://<your-site>")
        }
        Site::Unusable => Check::new(ID, Status::Fail, "the origin sent is no site")
            .fix("send origin=https://<your-site>, without a path"),
        Site::Named(origin) if settings.names_no_site() => {
            let title = format!("pages of {origin} may read the check, as any site may");
            Check::new(ID, Status::Pass, title)
        }
        Site::Named(origin) if settings.tag_origin_allowed(origin) => {
            Check::new(ID, Status::Pass, format!("pages of {origin} may read the check"))
        }
        Site::Named(origin) => {
            Check::new(ID, Status::Fail, format!("pages of {origin} may not read the check"))
                .detail("a tag that cannot read the answer lets every visitor through")
                .fix(format!("add {origin} to the room's tagOrigins"))
        }
    }
}

fn return_policy(settings: &Settings) -> Check {
    const ID: &str = "return_policy";
    if settings.known_origins().is_empty() {
        return Check::new(ID, Status::Fail, "released visitors have nowhere to go")
            .fix("set targetUrl of the room, or returnOrigins");
    }
    Check::new(ID, Status::Pass, "released visitors have somewhere to go")
}

fn return_origin(origin: &Origin, settings: &Settings) -> Check {
    const ID: &str = "return_origin";
    if settings.return_origin_allowed(origin) {
        return Check::new(ID, Status::Pass, format!("visitors may be returned to {origin}"));
    }
    Check::new(ID, Status::Warn, format!("visitors are not returned to {origin}"))
        .detail("they are sent to targetUrl of the room instead of the page they came from")
        .fix(format!("add {origin} to the room's returnOrigins"))
}

fn url_scope(url: &str, site: &Site, settings: &Settings) -> Check {
    const ID: &str = "url_scope";
    let Some(page) = PageUrl::parse(url) else {
        return Check::new(ID, Status::Warn, "url is no page's address")
            .fix("send an absolute address, https://<your-site>/<page>");
    };
    if matches!(site, Site::Named(origin) if !page.is_at(origin)) {
        return Check::new(ID, Status::Warn, "url is a page of another site than origin")
            .fix("verify each site by itself");
    }
    if settings.url_patterns.is_empty() {
        return Check::new(ID, Status::Pass, "the room has no rules: every page is queued");
    }
    match settings.url_patterns.scope(Some(url)).scope {
        Scope::In => Check::new(ID, Status::Pass, "the page is queued by the room's rules"),
        Scope::Out => Check::new(ID, Status::Warn, "the room's rules leave this page out")
            .fix("add a rule to urlPatterns, if the page is to be queued"),
        Scope::Unknown => Check::new(ID, Status::Warn, "the rules cannot tell about this page"),
    }
}

fn public_key(key: KeyShown) -> Check {
    const ID: &str = "public_key";
    match key {
        KeyShown::None => Check::new(ID, Status::Info, "no key was sent, none was checked"),
        KeyShown::Right => Check::new(ID, Status::Pass, "the Public API key is right"),
        KeyShown::Wrong => Check::new(ID, Status::Fail, "the Public API key is wrong")
            .detail("a server-side connector with this key leaves the room unprotected")
            .fix("use the PUBLIC_API_KEY of the queue server"),
        KeyShown::InQuery => {
            Check::new(ID, Status::Fail, "a key was sent in the URL, where it gets logged")
                .fix("send it as Authorization: Bearer, and change the key")
        }
    }
}

fn connector_version(connector: &str, version: Option<&str>) -> Check {
    const ID: &str = "connector_version";
    let Some(newest) = newest_version(connector) else {
        return Check::new(ID, Status::Info, "this server ships no connector of that name");
    };
    let Some(version) = version.filter(|version| !version.is_empty()) else {
        return Check::new(ID, Status::Info, format!("this server ships {connector} {newest}"));
    };
    match compare_versions(version, newest) {
        Ordering::Equal => {
            Check::new(ID, Status::Pass, format!("{connector} {newest} is what this server ships"))
        }
        Ordering::Less => {
            let title = format!("this {connector} is older than {newest}, which this server ships");
            Check::new(ID, Status::Warn, title)
                .fix("run the upgrade command that GET /api/v1/connectors names")
        }
        Ordering::Greater => {
            let title = format!("this {connector} is newer than {newest}, which this server ships");
            Check::new(ID, Status::Info, title)
        }
    }
}

fn https(inquiry: &Inquiry<'_>) -> Option<Check> {
    const ID: &str = "https";
    let Site::Named(origin) = &inquiry.site else { return None };
    let is_tag = matches!(inquiry.connector, Some("snippet" | "gtm"));
    Some(if !origin.as_str().starts_with("https:") {
        Check::new(ID, Status::Warn, format!("{origin} is not https"))
            .detail("tokens and cookies travel in the open")
    } else if is_tag && !inquiry.server_is_https {
        Check::new(ID, Status::Warn, "this server was not reached over https")
            .detail("browsers do not load a tag over http into a page over https")
            .fix("put TLS in front of the queue server and set PUBLIC_ORIGIN")
    } else {
        Check::new(ID, Status::Pass, format!("{origin} is https"))
    })
}

#[cfg(test)]
mod tests {
    use qm_core::room::patch::Patch;
    use qm_core::time::TimeMs;

    use super::*;

    fn statuses(body: Option<&str>, origin: Option<&str>, url: Option<&str>) -> Vec<String> {
        let room = RoomId::parse("shop").unwrap();
        let settings = body.map(|body| {
            let body: Value = serde_json::from_str(body).unwrap();
            let patch = Patch::parse(body.as_object().unwrap()).unwrap();
            patch.apply(&Settings::new(&room, TimeMs(0)), TimeMs(1)).unwrap()
        });
        let inquiry = Inquiry {
            room: &room,
            site: Site::find(origin, url, None),
            url,
            connector: Some("snippet"),
            version: Some("0.0.1"),
            key: KeyShown::None,
            server_version: "1.3.0",
            server_is_https: true,
        };
        let list = checks(&inquiry, settings.as_ref());
        list.iter().map(|check| format!("{}={}", check.id, check.status.as_str())).collect()
    }

    #[test]
    fn points_come_out() {
        let shop = r#"{"targetUrl":"https://shop.example.com/","urlPatterns":["/checkout*"]}"#;
        let site = Some("https://shop.example.com");
        for (body, origin, url, point, expected) in [
            (None, site, None, "room_exists", Some("fail")),
            (None, site, None, "tag_origin", None),
            (Some(shop), site, None, "room_exists", Some("pass")),
            (Some(shop), site, None, "tag_origin", Some("pass")),
            (Some(shop), Some("https://www.shop.example.com"), None, "tag_origin", Some("fail")),
            (Some(shop), Some("https://www.shop.example.com"), None, "return_origin", None),
            (Some(shop), Some("shop.example.com"), None, "tag_origin", Some("fail")),
            (Some(shop), None, None, "tag_origin", Some("info")),
            (Some(shop), None, None, "https", None),
            (Some(shop), None, Some("http://shop.example.com/a"), "https", Some("warn")),
            (Some(shop), site, Some("https://shop.example.com/a"), "url_scope", Some("warn")),
            (Some(shop), site, Some("https://evil.example/checkout"), "url_scope", Some("warn")),
            (Some(shop), site, Some("/checkout"), "url_scope", Some("warn")),
            (
                Some(shop),
                None,
                Some("https://shop.example.com/checkout"),
                "url_scope",
                Some("pass"),
            ),
            (Some("{}"), site, None, "return_policy", Some("fail")),
            (Some("{}"), site, None, "tag_origin", Some("pass")),
            (Some(shop), site, None, "return_policy", Some("pass")),
            (Some(shop), site, None, "connector_version", Some("warn")),
            (Some(shop), site, None, "public_key", Some("info")),
            (Some(r#"{"state":"bypass"}"#), site, None, "room_state", Some("warn")),
        ] {
            let list = statuses(body, origin, url);
            let found = list.iter().find_map(|line| line.strip_prefix(&format!("{point}=")));
            assert_eq!(found, expected, "{body:?} {origin:?} {url:?} {point}");
        }
    }
}
