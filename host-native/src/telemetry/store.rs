//! Whether the stores answer, as the last calls found it: for `/healthz`, metrics and the log.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The state of both stores. Copies agree with each other.
#[derive(Clone, Debug)]
pub struct StoreHealth(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    valkey: Part,
    postgres: Part,
}

#[derive(Debug)]
struct Part {
    name: &'static str,
    is_up: AtomicBool,
}

impl Part {
    const fn new(name: &'static str) -> Self {
        Self { name, is_up: AtomicBool::new(true) }
    }

    fn answered(&self) {
        if !self.is_up.swap(true, Ordering::Relaxed) {
            tracing::info!(store = self.name, "the store answers again");
        }
    }

    fn failed(&self, error: &dyn Display) {
        if self.is_up.swap(false, Ordering::Relaxed) {
            tracing::error!(store = self.name, %error, "the store does not answer");
        } else {
            tracing::debug!(store = self.name, %error, "the store does not answer");
        }
    }
}

impl Default for StoreHealth {
    fn default() -> Self {
        let (valkey, postgres) = (Part::new("valkey"), Part::new("postgres"));
        Self(Arc::new(Parts { valkey, postgres }))
    }
}

impl StoreHealth {
    /// Valkey answered.
    pub fn valkey_answered(&self) {
        self.0.valkey.answered();
    }

    /// Valkey did not answer.
    pub fn valkey_failed(&self, error: &dyn Display) {
        self.0.valkey.failed(error);
    }

    /// Postgres answered.
    pub fn postgres_answered(&self) {
        self.0.postgres.answered();
    }

    /// Postgres did not answer, or could not do what it was asked.
    pub fn postgres_failed(&self, error: &dyn Display) {
        self.0.postgres.failed(error);
    }

    /// Whether Valkey answered last.
    #[must_use]
    pub fn valkey_is_up(&self) -> bool {
        self.0.valkey.is_up.load(Ordering::Relaxed)
    }

    /// Whether Postgres answered last.
    #[must_use]
    pub fn postgres_is_up(&self) -> bool {
        self.0.postgres.is_up.load(Ordering::Relaxed)
    }

    /// Whether joins can be recorded.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.valkey_is_up() && self.postgres_is_up()
    }
}
