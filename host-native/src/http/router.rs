//! Which route answers a request. One table: names for metrics, methods for `Allow`, and a plain
//! match. `/api/v1/<route>` and `/api/<route>` are the same route (API-01).

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::CONNECTION;
use hyper::{Method, Request, Response};

use super::admin;
use super::answer::from_reply;
use super::app::App;
use super::asset::{serve_asset, serve_snippet};
use super::body::Body;
use super::connector;
use super::error::ApiError;
use super::health;
use super::read_body::{parse_json_object, read_json_body};
use super::request::Ask;
use super::server::ConnectionFacts;
use super::visitor::claim::hear_of_places;
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
    Health,
    Version,
    Admin(&'a str),
    Metrics,
    WaitingPage(&'a str),
    Asset,
    Snippet,
    Console,
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
            _ if path.starts_with("/assets/") => Self::Asset,
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
            "health" => Self::Health,
            "version" => Self::Version,
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
            Self::Connectors => "connectors",
            Self::Health => "health",
            Self::Version => "version",
            Self::Admin(_) => "admin",
            Self::Metrics => "metrics",
            Self::WaitingPage(_) => "page",
            Self::Asset => "asset",
            Self::Snippet => "snippet",
            Self::Console => "console",
            Self::Unknown => "unknown",
        }
    }

    /// The methods of the route, as `Allow` lists them.
    fn methods(self) -> &'static str {
        match self {
            Self::Join | Self::Leave => "POST, OPTIONS",
            Self::Notify => "POST",
            Self::Check | Self::Status => "GET, HEAD, OPTIONS",
            Self::Admin(rest) => admin::methods(rest),
            _ => "GET, HEAD",
        }
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
pub async fn respond(app: Arc<App>, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Some(facts) = head.extensions.get::<ConnectionFacts>().cloned() else {
        return ApiError::internal().into_response();
    };
    let ask = Ask::new(&app, head.method, head.uri, head.headers, facts.peer.ip());
    let route = Route::of(ask.path());
    let answered = match admit(&app, &ask, route) {
        Ok(()) => dispatch(&app, &ask, route, body, facts).await,
        Err(error) => Err(error),
    };
    let response = answered.unwrap_or_else(|error| refuse(&ask, route, error));
    app.metrics.count_request(route.name(), response.status().as_u16());
    response
}

/// An error as the route tells it: page loads of a browser get a page where JSON says nothing.
fn refuse(ask: &Ask, route: Route<'_>, error: ApiError) -> Response<Body> {
    let is_page_load =
        ask.header(hyper::header::HeaderName::from_static("sec-fetch-dest")) == Some("document");
    if error.code == "edge_required" && is_page_load {
        let accepted = ask.header(hyper::header::ACCEPT_LANGUAGE);
        return plain_page(error.status, "denied", choose(None, accepted));
    }
    let is_public = matches!(
        route,
        Route::Targeting | Route::Verify | Route::VerifyPixel | Route::Connectors | Route::Check
    );
    let mut response = error.into_response();
    if is_public && route != Route::Check {
        super::answer::add_header(&mut response, "access-control-allow-origin", "*");
    }
    response
}

fn admit(app: &App, ask: &Ask, route: Route<'_>) -> Result<(), ApiError> {
    if ask.uri.path_and_query().is_some_and(|target| target.as_str().len() > TARGET_BYTES_MAX) {
        return Err(ApiError::uri_too_long());
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
    facts: ConnectionFacts,
) -> Result<Response<Body>, ApiError> {
    if ask.method == Method::OPTIONS {
        let allowed = status::preflight_origin(app, ask);
        return Ok(from_reply(preflight_reply(route.methods(), allowed)));
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
        Route::Notify => Err(notify::notify(app, ask)),
        Route::Status => {
            hear_of_places(app, ask, ask.parameter("token").as_deref()).await;
            status::status(app, ask)
        }
        Route::Events => {
            hear_of_places(app, ask, ask.parameter("token").as_deref()).await;
            let mut response = events::events(app, ask, facts.draining)?;
            // A stream owns its connection: nothing else is to be sent on it.
            response.headers_mut().remove(CONNECTION);
            Ok(response)
        }
        Route::Check => {
            hear_of_places(app, ask, ask.parameter("token").as_deref()).await;
            check::check(app, ask).await
        }
        Route::Targeting => targeting::targeting(app, ask),
        Route::Verify => connector::verify(app, ask),
        Route::VerifyPixel => connector::verify_pixel(app, ask),
        Route::Connectors => connector::registry(app, ask),
        Route::Health => Ok(health::health(app)),
        Route::Version => Ok(health::version(app)),
        Route::Admin(rest) => admin::respond(app, ask, rest, body).await,
        Route::Metrics => admin::metrics(app, ask),
        Route::WaitingPage(id) => Ok(waiting_page(app, ask, id).await),
        Route::Asset => serve_asset(ask.path(), &ask.headers).ok_or_else(ApiError::not_found),
        Route::Snippet => Ok(serve_snippet(&ask.headers)),
        Route::Console => Ok(admin::console()),
        Route::Unknown => Err(ApiError::not_found()),
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
