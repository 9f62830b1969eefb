//! `GET /events`: the admin stream (ADM-56 to ADM-61). A stream ends when its credential does.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use hyper::Response;
use hyper::header::CONNECTION;
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::answer::add_header;
use super::super::app::App;
use super::super::body::Body;
use super::super::request::Ask;
use super::super::server::Draining;
use super::auth::{Principal, recognise_at};
use super::board::{Progress, Shape, Tick};
use crate::side::credential::{CredentialId, Role};

/// A revocation by another instance is seen at least this often.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

struct AdminStream {
    app: Arc<App>,
    credential: CredentialId,
    shape: Shape,
    ticks: watch::Receiver<Option<Arc<Tick>>>,
    revocations: watch::Receiver<u64>,
    draining: Draining,
    progress: Progress,
    was_opened: bool,
    look_again: Instant,
}

/// Opens the stream.
pub(super) fn events(
    app: &Arc<App>,
    ask: &Ask,
    who: &Principal,
    draining: Draining,
) -> Response<Body> {
    let stream = AdminStream {
        app: Arc::clone(app),
        credential: who.credential.clone(),
        shape: shape_of(who),
        ticks: app.board.subscribe(),
        revocations: app.board.revocations(),
        draining,
        progress: Progress::default(),
        was_opened: false,
        look_again: Instant::now() + LOOK_AGAIN,
    };
    let body = if ask.is_head() {
        Body::empty()
    } else {
        Body::stream(stream::unfold(stream, AdminStream::step))
    };
    let mut response = Response::new(body);
    for (name, value) in [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("cache-control", "no-store"),
        ("x-accel-buffering", "no"),
        ("x-content-type-options", "nosniff"),
    ] {
        add_header(&mut response, name, value);
    }
    // A stream owns its connection.
    response.headers_mut().remove(CONNECTION);
    response
}

/// What a caller is shown of a room.
#[must_use]
pub(super) fn shape_of(who: &Principal) -> Shape {
    if who.role == Role::Monitor { Shape::Redacted } else { Shape::Whole }
}

impl AdminStream {
    async fn step(mut self) -> Option<(Bytes, Self)> {
        if !self.was_opened {
            self.was_opened = true;
            return Some((self.app.board.first_frame(&self.app, self.shape), self));
        }
        loop {
            // Dropping any of these futures loses nothing: each looks at a latest value.
            let woken_by_tick = tokio::select! {
                () = self.draining.begun() => return None,
                changed = self.revocations.changed() => { changed.ok()?; false }
                changed = self.ticks.changed() => { changed.ok()?; true }
            };
            if !woken_by_tick || Instant::now() >= self.look_again {
                self.look_again = Instant::now() + LOOK_AGAIN;
                if !self.is_still_good().await {
                    return None;
                }
            }
            let tick = self.ticks.borrow_and_update().clone().filter(|_| woken_by_tick);
            if let Some(tick) = tick {
                return Some((tick.frame(&mut self.progress, self.shape), self));
            }
        }
    }

    /// A store that cannot be asked has revoked nothing.
    async fn is_still_good(&self) -> bool {
        let found = recognise_at(&self.app, self.app.clock.now(), &self.credential).await;
        found.map_or(true, |found| found.is_some())
    }
}
