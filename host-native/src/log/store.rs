//! The shared store as a whole: Valkey for the order, Postgres for the record.

use std::sync::Arc;

use qm_core::id::RoomId;
use qm_core::room::Room;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::journal::Journal;
use super::row::{Hash, Row};
use super::valkey::Valkey;
use super::{Ask, Down, NotRecorded, Reply, SharedLog};

/// Both halves.
#[derive(Clone)]
pub struct Store {
    /// The order and the feed.
    pub valkey: Valkey,
    /// The record.
    pub journal: Journal,
}

impl SharedLog for Store {
    async fn ask(&self, room: &RoomId, ask: &Ask) -> Result<Reply, Down> {
        self.valkey.ask(room, ask).await
    }

    async fn record(
        &self,
        room: &RoomId,
        generation: u64,
        rows: &[Row],
    ) -> Result<(), NotRecorded> {
        self.journal.record(room, generation, rows).await
    }

    async fn rows(
        &self,
        room: &RoomId,
        generation: u64,
        after: (u64, Hash),
        up_to: u64,
    ) -> Result<Vec<Row>, Down> {
        self.journal.rows(room, generation, after, up_to).await
    }

    async fn keep_snapshot(&self, room: Room, hash: Hash) -> Result<(), Down> {
        self.journal.keep_snapshot(room, hash).await
    }
}

/// TLS for Postgres, with the roots that browsers trust.
pub(super) fn tls() -> MakeRustlsConnect {
    let roots = rustls::RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    MakeRustlsConnect::new(config)
}
