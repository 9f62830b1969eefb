//! `GET /api/events`: the same frames as status, pushed (EVT-*). A stream builds a frame only when
//! the connection takes it, so a slow client costs nothing but its own delay.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use hyper::Response;
use qm_core::id::Place;
use qm_core::room::view::Frame;
use qm_core::time::TimeMs;
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::answer::{add_header, set_cookies};
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::super::server::Draining;
use super::status::{Standing, standing};
use super::streams::StreamPlace;

/// A frame is sent at least this often (EVT-03).
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Frames that only tell of moving up are sent at most this often.
const CALM: Duration = Duration::from_secs(1);

/// Answers a stream request: headers and cookies now, frames as they come.
///
/// # Errors
/// `invalid_token`, `invalid_room_id`, `sse_capacity`, `sse_per_ip_limit`.
pub fn events(app: &Arc<App>, ask: &Ask, draining: Draining) -> Result<Response<Body>, ApiError> {
    let standing = standing(app, ask)?;
    let told = standing.tell(app)?;
    let place = app.streams.open(ask.address.group())?;
    let cookies = standing.refreshed_cookies(app, ask, &told);
    let body = if ask.is_head() {
        Body::empty()
    } else {
        let stream = VisitorStream::new(app, standing, told.fresh, place, draining, ask.now);
        Body::stream(stream::unfold(stream, VisitorStream::step))
    };
    let mut response = Response::new(body);
    for (name, value) in [
        ("content-type", "text/event-stream; charset=utf-8"),
        // A proxy that compresses would hold frames back (C101).
        ("cache-control", "no-store, no-transform"),
        ("x-accel-buffering", "no"),
        ("x-content-type-options", "nosniff"),
    ] {
        add_header(&mut response, name, value);
    }
    set_cookies(&mut response, &cookies);
    Ok(response)
}

struct VisitorStream {
    app: Arc<App>,
    standing: Standing,
    /// The token signed when the stream was opened, told in every frame (TOK-35).
    fresh: Option<String>,
    changes: Option<watch::Receiver<()>>,
    draining: Draining,
    /// When the stream ends so that the browser fetches a new token (EVT-07 to EVT-13).
    refresh_at: Option<Instant>,
    last: Option<Sent>,
    is_over: bool,
    _place: StreamPlace,
}

struct Sent {
    frame: Frame,
    at: Instant,
    epoch: u64,
}

enum Next {
    Frame,
    Refresh,
    End,
}

impl VisitorStream {
    fn new(
        app: &Arc<App>,
        standing: Standing,
        fresh: Option<String>,
        place: StreamPlace,
        draining: Draining,
        now: TimeMs,
    ) -> Self {
        let changes = standing.room.as_ref().map(|room| room.changes.subscribe());
        let due = app.refresh.close_at(&standing.held.token).ms_since(now);
        let watched = standing.is_owner && fresh.is_none();
        let refresh_at = watched.then(|| Instant::now() + Duration::from_millis(due));
        Self {
            app: Arc::clone(app),
            standing,
            fresh,
            changes,
            draining,
            refresh_at,
            last: None,
            is_over: false,
            _place: place,
        }
    }

    /// The next octets of the stream; `None` ends it.
    async fn step(mut self) -> Option<(Bytes, Self)> {
        loop {
            if self.is_over {
                return None;
            }
            let next = if self.last.is_none() { Next::Frame } else { self.wait().await };
            match next {
                Next::End => return None,
                Next::Refresh => {
                    self.is_over = true;
                    return Some((Bytes::from_static(b"event: refresh\ndata: {}\n\n"), self));
                }
                Next::Frame => {
                    let epoch = self.epoch();
                    let Ok(told) = self.standing.tell(&self.app) else { return None };
                    if self.reference_was_drawn(&told.frame) {
                        self.is_over = true;
                        return Some((Bytes::from_static(b"event: refresh\ndata: {}\n\n"), self));
                    }
                    let mut frame = told.frame;
                    if !frame.passed && !frame.expired {
                        frame.token.clone_from(&self.fresh);
                    }
                    if let Some(bytes) = self.send(frame, epoch) {
                        return Some((bytes, self));
                    }
                }
            }
        }
    }

    /// The octets of a frame, unless it says what the last one said within a heartbeat.
    fn send(&mut self, frame: Frame, epoch: u64) -> Option<Bytes> {
        let now = Instant::now();
        if let Some(last) = &mut self.last {
            let unchanged = Frame { now: None, ..frame.clone() } == last.frame;
            if unchanged && now < last.at + HEARTBEAT {
                last.epoch = epoch;
                return None;
            }
        }
        let json = serde_json::to_string(&frame).unwrap_or_else(|never: serde_json::Error| {
            tracing::error!(error = %never, "a frame is not JSON");
            String::from("{}")
        });
        self.last = Some(Sent { frame: Frame { now: None, ..frame }, at: now, epoch });
        Some(Bytes::from(format!("event: status\ndata: {json}\n\n")))
    }

    /// Waits until there may be something to say.
    async fn wait(&mut self) -> Next {
        loop {
            let (beat, calm) = self.last.as_ref().map_or_else(
                || (Instant::now(), Instant::now()),
                |last| (last.at + HEARTBEAT, last.at + CALM),
            );
            let refresh_at = self.refresh_at;
            tokio::select! {
                () = self.draining.begun() => return Next::End,
                () = tokio::time::sleep_until(beat) => return Next::Frame,
                () = sleep_until_some(refresh_at) => {
                    self.refresh_at = None;
                    if self.refresh_is_allowed() {
                        return Next::Refresh;
                    }
                }
                () = changed(&mut self.changes) => {
                    if self.is_urgent() {
                        return Next::Frame;
                    }
                    // Places moved up, no more: told at a calm pace, and again if more happens.
                    let mut draining = self.draining.clone();
                    tokio::select! {
                        () = draining.begun() => return Next::End,
                        () = tokio::time::sleep_until(calm) => return Next::Frame,
                        () = self.urgent() => return Next::Frame,
                    }
                }
            }
        }
    }

    /// Ends when a change concerns this visitor beyond moving up.
    async fn urgent(&self) {
        let Some(room) = &self.standing.room else { return std::future::pending().await };
        let mut changes = room.changes.subscribe();
        while changes.changed().await.is_ok() {
            if self.is_urgent() {
                return;
            }
        }
    }

    /// Whether more than the place in line may have changed since the last frame.
    fn is_urgent(&self) -> bool {
        let (Some(room), Some(last)) = (&self.standing.room, &self.last) else { return true };
        let waits = !last.frame.passed && !last.frame.expired;
        let has_passed = match self.standing.held.token.place {
            Place::Ticket(number) => waits && number < room.changes.front(),
            Place::Reference(_) => false,
        };
        has_passed || room.changes.epoch() != last.epoch
    }

    fn epoch(&self) -> u64 {
        self.standing.room.as_ref().map_or(0, |room| room.changes.epoch())
    }

    /// A refresh is for places still waiting (TOK-31 to TOK-33).
    fn refresh_is_allowed(&self) -> bool {
        let told = self.standing.tell(&self.app);
        told.is_ok_and(|told| !told.frame.passed && !told.frame.expired)
    }

    /// The owner of a drawn reference reconnects for the ticket's token (HOL-52). A stream that was
    /// opened after the draw has it already.
    fn reference_was_drawn(&self, frame: &Frame) -> bool {
        let was_reference = matches!(self.standing.held.token.place, Place::Reference(_));
        was_reference
            && self.standing.is_owner
            && self.fresh.is_none()
            && frame.pre_queued != Some(true)
            && !frame.expired
            && frame.short_code.is_some()
    }
}

async fn sleep_until_some(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Ready at the next change; never when nothing can change any more.
async fn changed(changes: &mut Option<watch::Receiver<()>>) {
    let alive = match changes {
        Some(changes) => changes.changed().await.is_ok(),
        None => false,
    };
    if !alive {
        *changes = None;
        let _: Infallible = std::future::pending().await;
    }
}
