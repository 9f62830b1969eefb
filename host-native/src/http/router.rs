//! Which route answers a request. One table: names for metrics, methods for `Allow`, and a plain
//! match. `/api/v1/<route>` and `/api/<route>` are the same route (API-01).

use std::borrow::Cow;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::CONNECTION;
use hyper::{Method, Request, Response};

use super::admin;
use super::answer::{add_header, from_reply};
use super::app::App;
use super::asset::{serve_asset, serve_release, serve_snippet};
use super::body::Body;
use super::connector;
use super::docs;
use super::error::ApiError;
use super::health;
use super::openapi;
use super::read_body::{parse_json_object, read_json_body};
use super::request::Ask;
use super::server::ConnectionFacts;
use super::visitor::language::choose;
use super::visitor::page::{plain_page, waiting_page};
use super::visitor::{check, events, join, leave, notify, status, targeting};
use crate::guard::auth::came_through_edge;
use qm_core::door::reply::preflight_reply;

/// The longest request target (API-32).
const TARGET_BYTES_MAX: usize = 4096;

/// A route of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route<'a> {
    Join,
    Leave,
    Status,
    Events,
    Check,
    Targeting,
    Notify,
    Verify,
    VerifyPixel,
    Connectors,
    WordPressUpdate,
    Health,
    Version,
    Admin(&'a str),
    Metrics,
    WaitingPage(&'a str),
    Asset,
    Snippet,
    Release,
    Console,
    Docs(&'a str),
    Progress,
    OpenApi,
    Unknown,
}

impl<'a> Route<'a> {
    fn of(path: &'a str) -> Self {
        if let Some(rest) = path.strip_prefix("/api/") {
            return Self::of_api(rest.strip_prefix("v1/").unwrap_or(rest));
        }
        match path {
            "/" => Self::Console,
            "/events" => Self::Events,
            "/healthz" => Self::Health,
            "/metrics" => Self::Metrics,
            "/snippet/qm.js" => Self::Snippet,
            "/progress" => Self::Progress,
            "/docs" => Self::Docs(""),
            _ if path.starts_with("/docs/") => Self::Docs(&path["/docs".len()..]),
            _ if path.starts_with("/assets/") => Self::Asset,
            _ if path.starts_with("/connectors/") || path.starts_with("/snippet/qm-") => {
                Self::Release
            }
            _ => match path.strip_prefix("/w/") {
                Some(id) if !id.contains('/') => Self::WaitingPage(id),
                _ => Self::Unknown,
            },
        }
    }

    fn of_api(route: &'a str) -> Self {
        match route {
            "join" => Self::Join,
            "leave" => Self::Leave,
            "status" => Self::Status,
            "events" => Self::Events,
            "check" => Self::Check,
            "targeting" => Self::Targeting,
            "notify" => Self::Notify,
            "verify" => Self::Verify,
            "verify.gif" => Self::VerifyPixel,
            "connectors" => Self::Connectors,
            "connectors/wordpress/update" => Self::WordPressUpdate,
            "health" => Self::Health,
            "version" => Self::Version,
            "openapi.json" => Self::OpenApi,
            _ => match route.strip_prefix("admin/") {
                Some(rest) if admin::knows(rest) => Self::Admin(rest),
                _ => Self::Unknown,
            },
        }
    }

    /// The route's name in metrics.
    const fn name(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Leave => "leave",
            Self::Status => "status",
            Self::Events => "events",
            Self::Check => "check",
            Self::Targeting => "targeting",
            Self::Notify => "notify",
            Self::Verify => "verify",
            Self::VerifyPixel => "verify.gif",
            Self::Connectors | Self::WordPressUpdate => "connectors",
            Self::Health => "health",
            Self::Version => "version",
            Self::Admin(_) => "admin",
            Self::Metrics => "metrics",
            Self::WaitingPage(_) => "page",
            Self::Asset => "asset",
            Self::Snippet => "snippet",
            Self::Release => "release",
            Self::Console => "console",
            Self::Docs(_) => "docs",
            Self::Progress => "progress",
            Self::OpenApi => "openapi",
            Self::Unknown => "unknown",
        }
    }

    /// The methods of the route, as `Allow` lists them.
    fn methods(self) -> &'static str {
        match self {
            Self::Join => "POST, OPTIONS",
            Self::Leave | Self::Notify => "POST",
            Self::Check | Self::Status => "GET, HEAD, OPTIONS",
            _ if self.is_public() => "GET, HEAD, OPTIONS",
            Self::Admin(rest) => admin::methods(rest),
            _ => "GET, HEAD",
        }
    }

    /// Whether pages of every origin may read the answer (HOL-58).
    const fn is_public(self) -> bool {
        matches!(
            self,
            Self::Targeting
                | Self::Verify
                | Self::VerifyPixel
                | Self::Connectors
                | Self::WordPressUpdate
                | Self::Release
        )
    }

    fn allows(self, method: &Method) -> bool {
        self.methods().split(", ").any(|allowed| allowed == method.as_str())
    }

    /// Open without the edge's secret to a peer on this machine (HOL-30).
    const fn is_for_monitors(self) -> bool {
        matches!(self, Self::Health | Self::Version)
    }
}

/// Answers one request.
pub async fn respond(
    app: Arc<App>,
    request: Request<Incoming>,
    facts: Arc<ConnectionFacts>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let ask = Ask::new(&app, head.method, head.uri, head.headers, facts.peer.ip());
    let route = Route::of(ask.path());
    let answered = match admit(&app, &ask, route) {
        Ok(()) => dispatch(&app, &ask, route, body, &facts).await,
        Err(error) => Err(error),
    };
    let response = answered.unwrap_or_else(|error| {
        if matches!(error.status, 401 | 403 | 429 | 503) {
            app.protection.count_refusal(error.code);
        }
        refuse(&app, &ask, route, error)
    });
    app.metrics.count_request(route.name(), response.status().as_u16());
    response
}

/// An error as the route tells it: page loads of a browser get a page where JSON says nothing, and
/// a site that may read the route's answers may read its refusals.
fn refuse(app: &App, ask: &Ask, route: Route<'_>, error: ApiError) -> Response<Body> {
    let is_page_load =
        ask.header(hyper::header::HeaderName::from_static("sec-fetch-dest")) == Some("document");
    if error.code == "edge_required" && is_page_load {
        let accepted = ask.header(hyper::header::ACCEPT_LANGUAGE);
        return plain_page(error.status, "denied", choose(None, accepted));
    }
    let mut response = error.into_response();
    allow_origin(&mut response, route, readers(app, ask, route));
    response
}

/// Who may read the answers of a route across origins, by the room in `roomId` where it matters.
fn readers(app: &App, ask: &Ask, route: Route<'_>) -> Option<Cow<'static, str>> {
    match route {
        _ if route.is_public() => Some("*".into()),
        Route::Check => check::readers(app, ask),
        Route::Join | Route::Status => status::readers(app, ask),
        _ => None,
    }
}

fn allow_origin(
    response: &mut Response<Body>,
    route: Route<'_>,
    allowed: Option<Cow<'static, str>>,
) {
    if matches!(route, Route::Check | Route::Join | Route::Status) {
        // Caches must tell origins apart also where none is allowed (C032).
        add_header(response, "vary", "Origin");
    }
    if let Some(origin) = allowed {
        add_header(response, "access-control-allow-origin", &origin);
    }
}

fn admit(app: &App, ask: &Ask, route: Route<'_>) -> Result<(), ApiError> {
    if ask.uri.path_and_query().is_some_and(|target| target.as_str().len() > TARGET_BYTES_MAX) {
        return Err(ApiError::uri_too_long());
    }
    if !ask.names_one_host() {
        return Err(ApiError::bad_request().with_message("the request names more than one host"));
    }
    if let Some(secret) = &app.edge_secret {
        let is_local_monitor = route.is_for_monitors() && ask.peer.is_loopback();
        if !is_local_monitor && !came_through_edge(&ask.headers, secret) {
            return Err(ApiError::edge_required());
        }
    }
    if route == Route::Unknown {
        return Err(ApiError::not_found());
    }
    if !route.allows(&ask.method) {
        return Err(ApiError::method_not_allowed(route.methods()));
    }
    Ok(())
}

async fn dispatch(
    app: &Arc<App>,
    ask: &Ask,
    route: Route<'_>,
    body: Incoming,
    facts: &ConnectionFacts,
) -> Result<Response<Body>, ApiError> {
    if ask.method == Method::OPTIONS {
        return Ok(from_reply(preflight_reply(route.methods(), readers(app, ask, route))));
    }
    match route {
        Route::Join => {
            let body = parse_json_object(&read_json_body(body).await?)?;
            join::join(app, ask, &body).await
        }
        Route::Leave => {
            let body = parse_json_object(&read_json_body(body).await?)?;
            leave::leave(app, ask, &body).await
        }
        Route::Notify => {
            notify::before_body(app, ask)?;
            let body = parse_json_object(&read_json_body(body).await?)?;
            notify::notify(app, ask, &body).await
        }
        Route::Status => status::status(app, ask),
        Route::Events => {
            let mut response = events::events(app, ask, facts.draining.clone())?;
            // A stream owns its connection: nothing else is to be sent on it.
            response.headers_mut().remove(CONNECTION);
            Ok(response)
        }
        Route::Check => check::check(app, ask).await,
        Route::Targeting => targeting::targeting(app, ask),
        Route::Verify => connector::verify(app, ask).await,
        Route::VerifyPixel => connector::verify_pixel(app, ask).await,
        Route::Connectors => connector::registry(app, ask),
        Route::WordPressUpdate => connector::wordpress(app, ask),
        Route::Health => Ok(health::health(app)),
        Route::Version => Ok(health::version(app)),
        Route::Admin(rest) => {
            Box::pin(admin::respond(app, ask, rest, body, facts.draining.clone())).await
        }
        Route::Metrics => admin::metrics(app, ask).await,
        Route::WaitingPage(id) => Ok(Box::pin(waiting_page(app, ask, id)).await),
        Route::Asset => serve_asset(ask.path(), &ask.headers).ok_or_else(ApiError::not_found),
        Route::Snippet => Ok(serve_snippet(&ask.headers)),
        Route::Release => serve_release(ask.path(), &ask.headers).ok_or_else(ApiError::not_found),
        Route::Console => Ok(admin::console()),
        Route::Docs(rest) => docs::docs(app, ask, rest),
        Route::Progress => Ok(docs::progress()),
        Route::OpenApi => Ok(openapi::openapi()),
        Route::Unknown => Err(ApiError::not_found()),
    }
}

/// What the test of the API document asks the router.
#[cfg(test)]
pub(super) mod tests_support {
    use super::Route;

    pub(in super::super) fn is_known(path: &str) -> bool {
        Route::of(path) != Route::Unknown
    }

    pub(in super::super) fn allowed(path: &str) -> &'static str {
        Route::of(path).methods()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_and_no_other_spelling() {
        for path in ["/api/v1/check", "/api/check"] {
            assert_eq!(Route::of(path), Route::Check);
        }
        for path in [
            "/api/v1",
            "/api/v1/",
            "/api/v1/check/",
            "/api/v1//check",
            "//api/v1/check",
            "/api/v1/%63heck",
            "/API/v1/check",
            "/api/V1/check",
            "/api/v1/v1/check",
            "/api/v2/join",
            "/w/a/b",
            "/api/admin/nothing",
        ] {
            assert_eq!(Route::of(path), Route::Unknown, "{path}");
        }
        assert_eq!(Route::of("/w/a%20b"), Route::WaitingPage("a%20b"));
        assert_eq!(Route::of("/api/v1/admin/rooms"), Route::Admin("rooms"));
    }
}
