//! Rooms in the shared store: which there are, what other instances did and whom they saw. One
//! connection hears everything; the rooms' tasks ask for what it missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use qm_core::digest::hex;
use qm_core::id::{Place, RoomId};
use qm_core::room::patch::Patch;
use qm_core::room::{Event, Fact, Presence, Room, Settings, Standing};
use rand::Rng as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use super::replica::{FeedItem, Replica};
use super::shared::SharedTask;
use super::{Backing, RoomHandle, Rooms, SaveError, next_generation};
use crate::log::Down;
use crate::log::row::{GENESIS, Hash, Row};
use crate::log::store::Store;
use crate::log::valkey::Message;

/// How often others are told of visitors seen here.
const TELL_EVERY: Duration = Duration::from_millis(400);

/// How often the clock is compared and both stores are asked whether they answer.
const PING_EVERY: Duration = Duration::from_millis(500);

/// How often the register of rooms is read, should a message have been missed.
const REGISTER_EVERY: Duration = Duration::from_secs(5);

/// What is known of visitors counts after a start when somebody told of them within this time.
const FRESH_MS: u64 = 10_000;

/// An outage longer than this may have hidden visitors from this instance.
const OUTAGE: Duration = Duration::from_secs(3);

/// A request that names a place which this instance has not heard of waits this long for it.
const HEARSAY: Duration = Duration::from_millis(500);

/// What this instance is in the shared store.
pub(super) struct Shared {
    pub(super) store: Store,
    /// Its name there, new with every start.
    name: String,
    over: mpsc::UnboundedSender<Arc<RoomHandle>>,
    ended: Mutex<Option<mpsc::UnboundedReceiver<Arc<RoomHandle>>>>,
    /// One at a time reads the register.
    register: tokio::sync::Mutex<()>,
    is_ready: AtomicBool,
}

impl Shared {
    pub(super) fn new(store: Store) -> Self {
        let mut name = [0; 8];
        rand::rng().fill_bytes(&mut name);
        let (over, ended) = mpsc::unbounded_channel();
        Self {
            store,
            name: hex(&name),
            over,
            ended: Mutex::new(Some(ended)),
            register: tokio::sync::Mutex::default(),
            is_ready: AtomicBool::new(false),
        }
    }
}

impl Rooms {
    fn in_store(&self) -> Option<&Shared> {
        match &self.0.backing {
            Backing::Memory(_) => None,
            Backing::Shared(shared) => Some(shared),
        }
    }

    /// Whether other instances share these rooms.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.in_store().is_some()
    }

    /// Whether the rooms are known: at once in the memory store, after [`Rooms::start`] otherwise.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.in_store().is_none_or(|shared| shared.is_ready.load(Ordering::Relaxed))
    }

    /// Loads every room of the shared store and from then on follows the other instances.
    pub async fn start(&self) {
        let Some(shared) = self.in_store() else { return };
        let (tell, messages) = mpsc::unbounded_channel();
        tokio::spawn(shared.store.valkey.clone().listen(tell));
        self.compare_clocks(shared).await;
        while self.read_register(shared).await.is_err() {
            tracing::warn!("the rooms cannot be loaded yet, trying again");
            tokio::time::sleep(PING_EVERY).await;
        }
        shared.is_ready.store(true, Ordering::Relaxed);
        tokio::spawn(self.clone().dispatch(messages));
        tokio::spawn(self.clone().tell());
        tokio::spawn(self.clone().ping());
    }

    /// Loads rooms that other instances made.
    async fn read_register(&self, shared: &Shared) -> Result<(), Down> {
        let _only = shared.register.lock().await;
        let registered = shared.store.journal.register().await?;
        let mut result = Ok(());
        for entry in registered.iter().filter(|entry| entry.open) {
            let held = self.find(&entry.room);
            if held.is_some_and(|held| held.generation() >= entry.generation) {
                continue;
            }
            let loaded = shared.store.journal.load(&entry.room, entry.generation).await;
            match loaded {
                Ok(Some((room, hash))) => {
                    if self.begin(shared, room, hash).await.is_err() {
                        result = Err(Down);
                    }
                }
                Ok(None) => tracing::error!(room = %entry.room, "a room has no journal"),
                Err(Down) => result = Err(Down),
            }
        }
        let place = |room: &RoomId| registered.iter().position(|entry| entry.room == *room);
        self.0.live.write().in_order.sort_by_key(|held| place(held.id()));
        result
    }

    /// Starts a room from a state of it.
    async fn begin(
        &self,
        shared: &Shared,
        room: Room,
        hash: Hash,
    ) -> Result<Arc<RoomHandle>, Down> {
        let (tell, feed) = mpsc::unbounded_channel();
        let mut presence = Presence::presumed(&room, room.created_at());
        presence.keep_news();
        let (handle, inbox) = RoomHandle::new(room, presence, self.0.clock, Some(tell));
        let log = Arc::new(shared.store.clone());
        let mut replica = Replica::new(Arc::clone(&handle), log, hash, shared.name.clone());
        let began = Instant::now();
        replica.catch_up().await?;
        let seen = shared.store.valkey.seen(handle.id(), handle.generation()).await?;
        handle.look(|room, presence, now| {
            match seen.filter(|(at, _)| now.ms_since(*at) < FRESH_MS) {
                Some((_, news)) => presence.learn(&news),
                None => presence.presume(room, now),
            }
            let ms = began.elapsed().as_millis();
            let (generation, head) = (room.generation(), room.head());
            tracing::info!(room = %room.id(), generation, head, ms,
                "room loaded");
        });
        let task = SharedTask {
            replica,
            metrics: self.0.metrics.room(handle.id().as_str()),
            outflow_lag: self.0.metrics.outflow_lag_seconds.clone(),
            retain_ms: self.0.retain_ms,
            entropy: Box::new(|| {
                let mut octets = [0; 32];
                rand::rng().fill_bytes(&mut octets);
                octets
            }),
            over: shared.over.clone(),
        };
        if let Some(before) = self.find(handle.id()) {
            self.forget(&before);
        }
        self.0.live.write().insert(&handle);
        tokio::spawn(task.work(inbox, feed));
        Ok(handle)
    }

    /// Makes a room in the shared store; `None` when another instance made it first.
    pub(super) async fn make_shared(
        &self,
        id: &RoomId,
        patch: &Patch,
        shared: &Shared,
    ) -> Result<Option<Arc<RoomHandle>>, SaveError> {
        let now = self.0.clock.now();
        let settings = Box::new(patch.apply(&Settings::new(id, now), now)?);
        let first = |generation| {
            let fact =
                Fact::RoomOpened { room: id.clone(), generation, settings: settings.clone() };
            Row::after(&GENESIS, Event { seq: 1, at: now, fact })
        };
        let at_least = next_generation(None, now);
        let made = shared.store.journal.open_room(id, at_least, first).await;
        let Some(row) = made.map_err(|Down| SaveError::Unavailable)? else {
            self.read_register(shared).await.map_err(|Down| SaveError::Unavailable)?;
            return Ok(None);
        };
        let room = Room::open(&row.event).expect("a room_opened event opens a room");
        tracing::info!(room = %id, generation = room.generation(), "room made");
        let _only = shared.register.lock().await;
        let handle = match self.find(id).filter(|held| held.generation() == room.generation()) {
            Some(held) => held,
            None => {
                let begun = self.begin(shared, room, row.hash).await;
                begun.map_err(|Down| SaveError::Unavailable)?
            }
        };
        shared.store.valkey.tell_rooms().await;
        Ok(Some(handle))
    }

    /// Waits briefly until this instance has heard of a place that a genuine token names: another
    /// one may just have given it out. Ready at once for places that are known.
    pub async fn hear_of(&self, room: &RoomId, generation: u64, place: Place) {
        let Some(shared) = self.in_store() else { return };
        let give_up = Instant::now() + HEARSAY;
        let mut has_asked = false;
        while !self.knows(room, generation, place) && Instant::now() < give_up {
            if !has_asked {
                has_asked = true;
                match self.find(room).filter(|held| held.generation() == generation) {
                    Some(held) => held.tell(FeedItem::Missed),
                    None => drop(self.read_register(shared).await),
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn knows(&self, room: &RoomId, generation: u64, place: Place) -> bool {
        let Some(held) = self.find(room) else { return false };
        held.generation() > generation
            || (held.generation() == generation
                && held.look(|room, presence, now| {
                    place == Place::Ticket(0)
                        || room.standing(place, presence, now) != Standing::Unknown
                }))
    }

    async fn dispatch(self, mut messages: mpsc::UnboundedReceiver<Message>) {
        let Some(shared) = self.in_store() else { return };
        let Some(mut ended) = shared.ended.lock().take() else { return };
        let mut register = tokio::time::interval(REGISTER_EVERY);
        register.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => self.follow(shared, message).await,
                    None => return,
                },
                Some(room) = ended.recv() => self.forget(&room),
                _ = register.tick() => drop(self.read_register(shared).await),
            }
        }
    }

    async fn follow(&self, shared: &Shared, message: Message) {
        match message {
            Message::Settled { room, generation, from, rows } => {
                if let Some(held) = self.find(&room).filter(|r| r.generation() == generation) {
                    held.tell(FeedItem::Settled { from, rows });
                }
            }
            Message::Seen { room, generation, by, news } => {
                let held = self.find(&room).filter(|r| r.generation() == generation);
                if let Some(held) = held.filter(|_| by != shared.name) {
                    held.state.presence.lock().learn(&news);
                }
            }
            Message::Rooms => drop(self.read_register(shared).await),
            Message::Missed => {
                self.all().iter().for_each(|room| room.tell(FeedItem::Missed));
                let _ = self.read_register(shared).await;
            }
        }
    }

    /// Tells the others whom this instance saw.
    async fn tell(self) {
        let Some(shared) = self.in_store() else { return };
        let mut every = tokio::time::interval(TELL_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_told = Instant::now();
        loop {
            every.tick().await;
            let mut is_told = true;
            for room in self.all() {
                let news = room.state.presence.lock().take_news();
                if news.is_empty() {
                    continue;
                }
                let (id, generation, now) = (room.id(), room.generation(), self.0.clock.now());
                let valkey = &shared.store.valkey;
                if valkey.tell_seen(id, generation, &shared.name, &news, now).await.is_err() {
                    is_told = false;
                    room.state.presence.lock().tell_later(&news);
                }
            }
            if is_told {
                last_told = Instant::now();
            } else if last_told.elapsed() > OUTAGE {
                // Nobody heard of the others' visitors meanwhile: they count as here until they
                // are found out, which takes one presence window.
                last_told = Instant::now();
                for room in self.all() {
                    room.look(|room, presence, now| presence.presume(room, now));
                }
            }
        }
    }

    async fn ping(self) {
        let Some(shared) = self.in_store() else { return };
        let mut every = tokio::time::interval(PING_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            self.compare_clocks(shared).await;
            // The outcome is noted by the journal itself.
            let _ = shared.store.journal.ping().await;
        }
    }

    /// Moves the clock to Valkey's, the same for all instances. A slow answer tells little.
    async fn compare_clocks(&self, shared: &Shared) {
        const SLOW: Duration = Duration::from_millis(50);
        let (began, before) = (Instant::now(), self.0.clock.now());
        let Ok(there) = shared.store.valkey.time().await else { return };
        let took = began.elapsed();
        if took > SLOW {
            return;
        }
        let half = u64::try_from(took.as_millis() / 2).unwrap_or(0);
        let here = before.plus_ms(half);
        // Within the error of the measurement nothing is moved.
        if here.ms_since(there).max(there.ms_since(here)) > 5 {
            self.0.clock.adjust(here, there);
        }
    }
}

impl RoomHandle {
    fn tell(&self, item: FeedItem) {
        if let Some(feed) = &self.feed {
            // A room that is over hears nothing any more.
            let _ = feed.send(item);
        }
    }
}
