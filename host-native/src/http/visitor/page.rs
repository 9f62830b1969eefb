//! `GET /w/:roomId`: the waiting page (WAI-*). With JavaScript the page joins by itself; without, a
//! link or the refresh takes the place here (`?nojs=1`) and the page tells it (`?nojs=2`), so that
//! looking at the page alone takes no place, and blocked cookies take no ticket after ticket.

use hyper::header::{ACCEPT_LANGUAGE, CACHE_CONTROL, HeaderValue, LOCATION};
use hyper::{Response, StatusCode};
use qm_core::id::RoomId;
use qm_core::room::Settings;
use qm_core::room::view::Frame;
use qm_core::url::{Origin, PageUrl, return_destination, with_query_parameter};
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::super::answer::set_cookies;
use super::super::app::App;
use super::super::asset::{NOT_FOUND_HTML, WAITING_HTML, asset_path};
use super::super::body::Body;
use super::super::request::Ask;
use super::super::template::{fill, html, page, script_json};
use super::claim::cookie_tokens;
use super::join::{take_place, take_quota};
use super::language::{CODES, Language, choose};
use super::status::Standing;
use crate::rooms::RoomHandle;

/// Answers a request for a waiting page.
pub async fn waiting_page(app: &App, ask: &Ask, id: &str) -> Response<Body> {
    let language = language_of(ask);
    let Ok(id) = RoomId::parse(id) else { return plain_page(400, "bad_room", language) };
    let Some(room) = app.rooms.find(&id) else { return plain_page(404, "not_found", language) };
    if ask.is_prefetch() {
        // Nobody looks at it yet: it takes no place, and is not shown later as if it were fresh.
        return not_ahead_of_time();
    }
    let nojs = ask.parameter("nojs");
    if nojs.as_deref() == Some("1") && !ask.is_head() {
        return take_place_without_script(app, ask, &room, language).await;
    }
    let place = place_of(app, ask, &room);
    let settings = room.look(|room, _, _| room.settings().clone());
    let view = View::new(app, ask, &id, &settings, language);
    let nojs_body = NoScript { shown: nojs.as_deref() == Some("2"), place: place.as_ref() };
    let markup = view.markup(&nojs_body, None);
    page(200, markup, &view.policy())
}

fn not_ahead_of_time() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A short page about something that went wrong, in the visitor's language.
#[must_use]
pub fn plain_page(status: u16, topic: &str, language: &Language) -> Response<Body> {
    let title = html(language.text(&format!("{topic}_title")));
    let body = format!("<p>{}</p>", html(language.text(&format!("{topic}_text"))));
    let values = [
        ("lang", language.code),
        ("dir", language.direction),
        ("title", &title),
        ("heading", &title),
        ("body", &body),
        ("css", asset_path("waiting.css")),
    ];
    let policy = "default-src 'none'; style-src 'self'; img-src data:; frame-ancestors 'self'";
    page(status, fill(NOT_FOUND_HTML, &values), policy)
}

/// The language of a visitor.
#[must_use]
pub fn language_of(ask: &Ask) -> &'static Language {
    choose(ask.parameter("lang").as_deref(), ask.header(ACCEPT_LANGUAGE))
}

/// What the cookies of this browser stand for in the room.
fn place_of(app: &App, ask: &Ask, room: &std::sync::Arc<RoomHandle>) -> Option<Frame> {
    let mut frames = cookie_tokens(app, ask, room.id()).into_iter().filter_map(|held| {
        let is_current = held.token.generation == room.generation();
        let room = is_current.then(|| std::sync::Arc::clone(room));
        Standing { held, room, is_owner: false }.tell(app).ok().map(|told| told.frame)
    });
    let first = frames.next()?;
    if !first.expired {
        return Some(first);
    }
    Some(frames.find(|frame| !frame.expired).unwrap_or(first))
}

async fn take_place_without_script(
    app: &App,
    ask: &Ask,
    room: &RoomHandle,
    language: &Language,
) -> Response<Body> {
    let joined = match take_quota(app, ask, "page") {
        Ok(()) => take_place(app, ask, room, None).await,
        Err(error) => Err(error),
    };
    let settings = room.look(|room, _, _| room.settings().clone());
    let view = View::new(app, ask, room.id(), &settings, language);
    match joined {
        Ok(joined) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::SEE_OTHER;
            if let Ok(to) = HeaderValue::from_str(&view.own_address("2")) {
                response.headers_mut().insert(LOCATION, to);
            }
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            set_cookies(&mut response, &joined.cookies);
            response
        }
        Err(error) => {
            let markup = view.markup(&NoScript { shown: true, place: None }, Some("nojs_error"));
            let mut response = page(error.status, markup, &view.policy());
            if let Some(seconds) = error.retry_after {
                response.headers_mut().insert("retry-after", seconds.into());
            }
            response
        }
    }
}

struct NoScript<'a> {
    /// The page was reached without JavaScript.
    shown: bool,
    place: Option<&'a Frame>,
}

struct View<'a> {
    app: &'a App,
    ask: &'a Ask,
    settings: &'a Settings,
    room: &'a RoomId,
    language: &'a Language,
    return_url: Option<String>,
}

impl<'a> View<'a> {
    fn new(
        app: &'a App,
        ask: &'a Ask,
        room: &'a RoomId,
        settings: &'a Settings,
        language: &'a Language,
    ) -> Self {
        let mut view = Self { app, ask, settings, room, language, return_url: None };
        view.return_url = view.allowed_return();
        view
    }

    /// This page's address with another `nojs`, keeping the language and an allowed destination.
    fn own_address(&self, nojs: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("nojs", nojs);
        if self.ask.parameter("lang").is_some() {
            query.append_pair("lang", self.language.code);
        }
        if let Some(url) = &self.return_url {
            query.append_pair("qm_return", url);
        }
        format!("/w/{}?{}", self.room, query.finish())
    }

    /// The `qm_return` that the room's return policy allows; the queue's own paths never are one.
    fn allowed_return(&self) -> Option<String> {
        let asked = self.ask.parameter("qm_return")?;
        let origins = self.settings.known_origins();
        return_destination(&asked, &origins).filter(|url| !self.is_own(url))
    }

    fn is_own(&self, url: &str) -> bool {
        let Some(page) = PageUrl::parse(url) else { return false };
        let configured = self.app.config.public_origin.as_deref().and_then(Origin::parse);
        // Where TLS ends before us unseen, only the hosts can be compared.
        let own = [configured, self.ask.own_origin()];
        let at_own_host = own.iter().flatten().any(|own| own.host() == page.origin().host());
        let path = page.path();
        at_own_host && ["/w/", "/api/", "/events", "/__qm"].iter().any(|own| path.starts_with(own))
    }

    fn policy(&self) -> String {
        let mut ancestors = String::from("'self'");
        for origin in self.settings.known_origins() {
            ancestors.push(' ');
            ancestors.push_str(origin.as_str());
        }
        format!(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; \
             connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors {ancestors}"
        )
    }

    fn markup(&self, nojs: &NoScript<'_>, problem: Option<&str>) -> String {
        let language = self.language;
        let branding = &self.settings.branding;
        let title = html(&language.fill("title", "name", &self.settings.name));
        let heading = html(
            branding.title.as_deref().unwrap_or_else(|| language.text(heading_key(nojs.place))),
        );
        let logo = branding.logo_url.as_deref().map_or_else(String::new, |url| {
            format!("<img src=\"{}\" alt=\"\" referrerpolicy=\"no-referrer\">", html(url))
        });
        let config = script_json(&self.config(nojs.place));
        let strings = script_json(&language.json);
        let (body, refresh) = self.static_body(nojs, problem);
        let head = refresh.map_or_else(String::new, |to| {
            let content = html(&to);
            format!("<noscript><meta http-equiv=\"refresh\" content=\"{content}\"></noscript>")
        });
        let values = [
            ("lang", language.code),
            ("dir", language.direction),
            ("title", &title),
            ("css", asset_path("waiting.css")),
            ("js", asset_path("waiting.js")),
            ("config", &config),
            ("strings", &strings),
            ("noscript_head", &head),
            ("heading", &heading),
            ("logo", &logo),
            ("body", &body),
        ];
        fill(WAITING_HTML, &values)
    }

    /// `QM_CONFIG` (HOL-37).
    fn config(&self, place: Option<&Frame>) -> Value {
        let mut config = Map::new();
        let mut set = |name: &str, value: Value| config.insert(name.into(), value);
        set("roomId", self.room.as_str().into());
        set("name", self.settings.name.as_str().into());
        set("branding", self.settings.branding.to_json());
        if let Some(url) = &self.return_url {
            set("returnUrl", url.as_str().into());
        }
        if let Some(url) = &self.settings.target_url {
            set("targetUrl", url.as_str().into());
        }
        if let Some(lapsed) = place.and_then(lapsed) {
            set("lapsed", lapsed.into());
        }
        set("notify", self.app.config.mail.is_some().into());
        set("lang", self.language.code.into());
        set("langs", json!(CODES));
        set("base", "".into());
        set("api", "/api/v1".into());
        set("now", self.ask.now.0.into());
        config.into()
    }

    /// What the page says before or without JavaScript, and where it refreshes to.
    fn static_body(&self, nojs: &NoScript<'_>, problem: Option<&str>) -> (String, Option<String>) {
        let text = |key: &str| format!("<p>{}</p>", html(self.language.text(key)));
        let take = self.own_address("1");
        let link = |to: &str, key: &str| {
            format!("<p><a href=\"{}\">{}</a></p>", html(to), html(self.language.text(key)))
        };
        let mut body = self.message();
        let again = Some(String::from("10"));
        if let Some(problem) = problem {
            let retry = link(&take, "nojs_take_place");
            return (body + &text(problem) + &retry, Some(format!("10;url={take}")));
        }
        match nojs.place {
            Some(frame) if frame.passed => return self.through(body, frame),
            Some(frame) if !frame.expired => {
                body += &self.place(frame);
                return (body + &text("nojs_refresh"), again);
            }
            Some(frame) => {
                if let Some(lapsed) = lapsed(frame) {
                    body += &text(if lapsed == "reset" { "nojs_reset" } else { "nojs_expired" });
                }
            }
            None if nojs.shown => {
                // A place was taken on the way here and its cookies did not come back.
                return (
                    body + &text("nojs_cookies_blocked") + &link(&take, "nojs_take_place"),
                    None,
                );
            }
            None => {}
        }
        body += &format!("<noscript>{}</noscript>", link(&take, "nojs_take_place"));
        (body, Some(format!("10;url={take}")))
    }

    fn message(&self) -> String {
        self.settings.branding.message.as_deref().map_or_else(String::new, |message| {
            let title = html(self.language.text("message_from_team"));
            format!("<p><strong>{title}</strong></p><p dir=\"auto\">{}</p>", html(message))
        })
    }

    fn place(&self, frame: &Frame) -> String {
        let language = self.language;
        let mut lines = Vec::new();
        if let Some(position) = frame.position.flatten() {
            lines.push(language.fill("nojs_waiting", "position", &position.to_string()));
        }
        match (frame.state, frame.opens_at) {
            ("paused", _) => lines.push(language.text("nojs_paused").to_owned()),
            ("scheduled", Some(at)) => {
                lines.push(language.fill("nojs_scheduled", "time", &at.to_utc_minutes()));
            }
            _ => lines.push(match frame.eta_sec.flatten() {
                None => language.text("nojs_wait_unknown").to_owned(),
                Some(..60) => language.text("nojs_wait_short").to_owned(),
                Some(seconds) => {
                    language.fill("nojs_wait", "minutes", &seconds.div_ceil(60).to_string())
                }
            }),
        }
        lines.iter().map(|line| format!("<p>{}</p>", html(line))).collect()
    }

    /// A passed visitor goes on by a redirect, with a plain link beside it.
    fn through(&self, body: String, frame: &Frame) -> (String, Option<String>) {
        let token = frame.token.as_deref().unwrap_or_default();
        let to = self.return_url.as_deref().or(self.settings.target_url.as_deref());
        let Some(to) = to.and_then(|to| with_query_parameter(to, "qm_token", token)) else {
            return (body + &format!("<p>{}</p>", html(self.language.text("nojs_through"))), None);
        };
        let link = format!(
            "<p>{}</p><noscript><p><a href=\"{}\" rel=\"noreferrer\">{}</a></p></noscript>",
            html(self.language.text("nojs_passed")),
            html(&to),
            html(self.language.text("nojs_continue")),
        );
        (body + &link, Some(format!("0;url={to}")))
    }
}

fn heading_key(place: Option<&Frame>) -> &'static str {
    match place {
        Some(frame) if frame.passed => "heading_passed",
        Some(frame) if frame.state == "scheduled" => "heading_scheduled",
        _ => "heading_waiting",
    }
}

fn lapsed(frame: &Frame) -> Option<&'static str> {
    match frame.reason? {
        "pass_expired" | "session_ended" => Some("expired"),
        "ejected" | "purged" | "room_reset" => Some("reset"),
        _ => None,
    }
}
