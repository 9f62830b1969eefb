//! `GET /security`: bot-protection scores by room, and refusals by code (ADM-04).

use hyper::Response;
use serde_json::{Value, json};

use super::super::answer;
use super::super::app::App;
use super::super::body::Body;

/// Signals told of a room.
const TOP_SIGNALS: usize = 5;

/// The scores of this instance.
pub(super) fn security(app: &App) -> Response<Body> {
    let rooms: Vec<Value> = app
        .rooms
        .all()
        .iter()
        .map(|room| {
            let mode = room.look(|room, _, _| room.settings().protection.as_str());
            let scores = app.protection.scores(room.id());
            let mut signals: Vec<(&str, u64)> = scores.signals.into_iter().collect();
            signals.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
            let tell = |(name, count): &(&str, u64)| json!({ "signal": name, "count": count });
            json!({
                "roomId": room.id().as_str(),
                "mode": mode,
                "scored": scores.scored,
                "refused": scores.refused,
                "histogram": scores.histogram,
                "topSignals": signals.iter().take(TOP_SIGNALS).map(tell).collect::<Vec<_>>(),
            })
        })
        .collect();
    answer::json(&json!({ "rooms": rooms, "refusals": app.protection.refusals() }))
}
