//! `GET /api/targeting`: a room's URL rules for integrations, cheap to poll (TGT-01 to TGT-04).

use hyper::header::{CACHE_CONTROL, HeaderValue, IF_NONE_MATCH};
use hyper::{Response, StatusCode};
use qm_core::door::reply::patterns;
use qm_core::id::RoomId;
use serde_json::json;

use super::super::answer::{self, add_header};
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::status::take_quota;

/// Answers a request for a room's rules.
///
/// # Errors
/// `rate_limited`, `invalid_room_id`, `room_not_found`.
pub fn targeting(app: &App, ask: &Ask) -> Result<Response<Body>, ApiError> {
    take_quota(app, ask, "targeting")?;
    let id = ask.parameter("roomId").unwrap_or_default();
    let id = RoomId::parse(&id).map_err(|_| ApiError::invalid_room_id())?;
    let room = app.rooms.find(&id).ok_or_else(ApiError::room_not_found)?;
    let (rev, body) = room.look(|room, _, _| {
        let settings = room.settings();
        let body = json!({
            "roomId": id.as_str(),
            "rev": settings.targeting_rev,
            "scoped": !settings.url_patterns.is_empty(),
            "updatedAt": settings.targeting_updated_at,
            "patterns": patterns(settings),
        });
        (settings.targeting_rev, body)
    });
    let tag = format!("\"{id}-{}-{rev}\"", room.generation());
    let known = ask.headers.get_all(IF_NONE_MATCH).iter().filter_map(|v| v.to_str().ok());
    let mut response = if known.into_iter().any(|list| names_tag(list, &tag)) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        answer::json(&body)
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    add_header(&mut response, "etag", &tag);
    add_header(&mut response, "access-control-allow-origin", "*");
    Ok(response)
}

/// Weak comparison over a list, as for any GET (C071).
fn names_tag(list: &str, tag: &str) -> bool {
    let mut tags = list.split(',').map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_compare_weakly_and_in_lists() {
        for (list, names) in [
            ("\"a-1\"", true),
            ("W/\"a-1\"", true),
            ("\"x\", \"a-1\"", true),
            ("*", true),
            ("\"a-1-gzip\"", false),
            ("a-1", false),
            ("", false),
        ] {
            assert_eq!(names_tag(list, "\"a-1\""), names, "{list}");
        }
    }
}
