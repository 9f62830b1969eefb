//! What every route works with: settings, rooms, keys, quotas and counters of this process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use qm_core::token::{KeyRing, RefreshRule};
use tokio::sync::Notify;

use super::admin::board::Board;
use super::visitor::streams::Streams;
use crate::client::Client;
use crate::clock::Clock;
use crate::config::{Config, Limit};
use crate::guard::auth::{AdminKey, EdgeSecret, LockOut, PublicKeys};
use crate::guard::protection::Protection;
use crate::guard::rate::Quota;
use crate::rooms::Rooms;
use crate::side::{MemorySide, Side};
use crate::telemetry::{Metrics, Webhook};

/// The version of the server, which is that of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One running server.
pub struct App {
    /// The settings in effect.
    pub config: Config,
    /// The time.
    pub clock: Clock,
    /// The rooms.
    pub rooms: Arc<Rooms>,
    /// Everything that is not the live queue.
    pub side: Arc<Side>,
    /// What the admin stream shows.
    pub board: Board,
    /// What bot protection saw.
    pub protection: Protection,
    /// Calls others: webhooks and probes.
    pub client: Client,
    /// `ALERT_WEBHOOK_URL`.
    pub webhook: Option<Webhook>,
    /// Bounds the audit entries of refused attempts.
    pub refused_trail: Quota<()>,
    /// Told when an operator orders a shutdown.
    pub stop: Notify,
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
    /// The limit on file descriptors.
    pub descriptors: u64,
    /// Graceful shutdown has begun: the instance is not ready any more.
    pub draining: AtomicBool,
}

impl App {
    /// Builds the parts that `config` describes.
    #[must_use]
    pub fn new(config: Config, descriptors: u64) -> Self {
        let (clock, metrics) = (Clock::start(), Arc::new(Metrics::new(VERSION)));
        let token_max_age_ms = u64::from(config.tokens.max_age_seconds) * 1000;
        let previous = config.keys.signing_previous.as_ref().map(|key| key.reveal().as_bytes());
        let keys = KeyRing::new(&config.keys.signing, previous, config.tokens.sign_v2);
        let client = Client::new();
        let webhook = config
            .alert_webhook
            .clone()
            .map(|url| Webhook::new(url, keys.webhook_key(), client.clone()));
        Self {
            clock,
            rooms: Arc::new(Rooms::new(clock, Arc::clone(&metrics), token_max_age_ms)),
            side: Arc::new(Side::Memory(MemorySide::default())),
            board: Board::default(),
            protection: Protection::default(),
            client,
            webhook,
            refused_trail: Quota::new(Limit::At(REFUSALS_PER_MINUTE)),
            stop: Notify::new(),
            keys,
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
            descriptors,
            draining: AtomicBool::new(false),
            config,
        }
    }

    /// The name of this server: its public origin, or where it listens.
    #[must_use]
    pub fn server_name(&self) -> String {
        let bind = self.config.bind;
        self.config.public_origin.clone().unwrap_or_else(|| format!("http://{bind}"))
    }
}

/// Refused attempts that the audit trail takes in a minute.
const REFUSALS_PER_MINUTE: u32 = 60;
