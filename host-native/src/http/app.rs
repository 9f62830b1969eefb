//! What every route works with: settings, rooms, keys, quotas and counters of this process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use qm_core::token::{KeyRing, RefreshRule};

use super::visitor::streams::Streams;
use crate::clock::Clock;
use crate::config::Config;
use crate::guard::auth::{AdminKey, EdgeSecret, LockOut, PublicKeys};
use crate::guard::rate::Quota;
use crate::rooms::{Rooms, Store};
use crate::telemetry::{Metrics, StoreHealth};

/// The version of the server, which is that of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One running server.
pub struct App {
    /// The settings in effect.
    pub config: Config,
    /// The time.
    pub clock: Clock,
    /// The rooms.
    pub rooms: Rooms,
    /// Signs and verifies tokens.
    pub keys: KeyRing,
    /// When a token is signed again.
    pub refresh: RefreshRule,
    /// How old a token may be.
    pub token_max_age_ms: u64,
    /// `ADMIN_KEY`.
    pub admin_key: AdminKey,
    /// `PUBLIC_API_KEY`.
    pub public_keys: PublicKeys,
    /// `EDGE_SECRET`.
    pub edge_secret: Option<EdgeSecret>,
    /// Addresses locked out of the admin side.
    pub lock_out: LockOut,
    /// `JOIN_LIMIT_PER_MIN`.
    pub join_quota: Quota,
    /// `CHECK_LIMIT_PER_MIN`.
    pub check_quota: Quota,
    /// `NOTIFY_LIMIT_PER_MIN`.
    pub notify_quota: Quota,
    /// Counters and histograms.
    pub metrics: Arc<Metrics>,
    /// Open visitor streams.
    pub streams: Arc<Streams>,
    /// Whether the stores answer.
    pub store_health: StoreHealth,
    /// The limit on file descriptors.
    pub descriptors: u64,
    /// Graceful shutdown has begun: the instance is not ready any more.
    pub draining: AtomicBool,
}

impl App {
    /// Builds the parts that `config` describes; rooms are in `store`, or in this process.
    #[must_use]
    pub fn new(
        config: Config,
        descriptors: u64,
        store: Option<Store>,
        store_health: StoreHealth,
    ) -> Self {
        let (clock, metrics) = (Clock::start(), Arc::new(Metrics::new(VERSION)));
        let token_max_age_ms = u64::from(config.tokens.max_age_seconds) * 1000;
        let rooms = match store {
            None => Rooms::new(clock, Arc::clone(&metrics), token_max_age_ms),
            Some(store) => Rooms::shared(clock, Arc::clone(&metrics), token_max_age_ms, store),
        };
        let previous = config.keys.signing_previous.as_ref().map(|key| key.reveal().as_bytes());
        Self {
            clock,
            rooms,
            keys: KeyRing::new(&config.keys.signing, previous, config.tokens.sign_v2),
            refresh: RefreshRule::new(
                u64::from(config.tokens.max_age_seconds),
                u64::from(config.tokens.cookie_max_age_seconds),
            ),
            token_max_age_ms,
            admin_key: AdminKey::new(&config.keys.admin),
            public_keys: PublicKeys::new(&config.keys.public_api),
            edge_secret: config.keys.edge.as_ref().map(EdgeSecret::new),
            lock_out: LockOut::new(config.limits.admin_auth_failures_per_minute),
            join_quota: Quota::new(config.limits.join_per_minute),
            check_quota: Quota::new(config.limits.check_per_minute),
            notify_quota: Quota::new(config.limits.notify_per_minute),
            streams: Arc::new(Streams::new(
                config.limits.streams_total,
                config.limits.streams_per_address,
                metrics.sse_streams.clone(),
            )),
            metrics,
            store_health,
            descriptors,
            draining: AtomicBool::new(false),
            config,
        }
    }
}
