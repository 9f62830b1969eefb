//! The journal in Postgres: rows of every room, the rooms there are, and snapshots. Knows nothing
//! of what the rows mean.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use qm_core::id::RoomId;
use qm_core::room::{Room, Snapshot};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::row::{GENESIS, Hash, Row};
use super::{Down, NotRecorded};
use crate::telemetry::StoreHealth;

/// Connections to Postgres: room tasks hold one only while a statement runs.
const CONNECTIONS: usize = 16;

/// A statement that takes longer counts as lost.
const STATEMENT_MAX: Duration = Duration::from_secs(2);

/// A connection that takes longer counts as refused.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// Rows read at once.
const ROWS_MAX: i64 = 20_000;

/// The form of snapshot octets: postcard, deflated.
const SNAPSHOT_FORMAT: i16 = 1;

/// A room as the register has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The room.
    pub room: RoomId,
    /// Its present generation.
    pub generation: u64,
    /// Whether it is there.
    pub open: bool,
}

/// A row as it is stored.
#[derive(Clone, Debug)]
pub struct RawRow {
    /// Its number.
    pub seq: u64,
    /// The name of the event.
    pub event: String,
    /// The event.
    pub body: String,
    /// The hash.
    pub hash: Hash,
}

/// Access to the journal. Copies share connections.
#[derive(Clone)]
pub struct Journal {
    pool: Pool,
    health: StoreHealth,
}

const INSERT: &str = "\
WITH closed AS (UPDATE qm_room SET open = false WHERE room = $1 AND generation = $2 AND $7) \
INSERT INTO qm_journal (room, generation, seq, event, body, hash) \
SELECT $1, $2, r.seq, r.event, r.body::jsonb, r.hash \
FROM unnest($3::bigint[], $4::text[], $5::text[], $6::bytea[]) AS r(seq, event, body, hash)";

const VOIDED: &str = "\
SELECT (body->>'from_seq')::bigint, (body->>'to_seq')::bigint, seq \
FROM qm_journal WHERE room = $1 AND generation = $2 AND seq > $3 AND event = 'voided'";

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Journal {
    /// Prepares connections; none is made yet.
    ///
    /// # Errors
    /// A text that names what is wrong with the address.
    pub fn new(url: &str, health: StoreHealth) -> Result<Self, String> {
        let config: tokio_postgres::Config =
            url.parse().map_err(|_| "DATABASE_URL cannot be read".to_owned())?;
        let recycle = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = if config.get_ssl_mode() == tokio_postgres::config::SslMode::Disable {
            Manager::from_config(config, tokio_postgres::NoTls, recycle)
        } else {
            Manager::from_config(config, super::store::tls(), recycle)
        };
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(CONNECT_MAX))
            .create_timeout(Some(CONNECT_MAX))
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { pool, health })
    }

    async fn connection(&self) -> Result<Object, Down> {
        self.pool.get().await.map_err(|error| {
            self.health.postgres_failed(&error);
            Down
        })
    }

    /// Runs reads within the time; a connection that was too slow is closed.
    async fn read<T>(
        &self,
        limit: Duration,
        work: impl AsyncFnOnce(&Object) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Down> {
        let connection = self.connection().await?;
        match tokio::time::timeout(limit, work(&connection)).await {
            Ok(Ok(result)) => {
                self.health.postgres_answered();
                Ok(result)
            }
            Ok(Err(error)) => {
                self.health.postgres_failed(&error);
                Err(Down)
            }
            Err(late) => {
                drop(Object::take(connection));
                self.health.postgres_failed(&late);
                Err(Down)
            }
        }
    }

    /// Brings the schema up.
    ///
    /// # Errors
    /// A text for the operator.
    pub async fn migrate(&self) -> Result<(), String> {
        let mut connection = self.pool.get().await.map_err(|error| error.to_string())?;
        super::migration::migrate(&mut connection).await.map_err(|error| error.to_string())
    }

    /// Whether Postgres answers.
    ///
    /// # Errors
    /// [`Down`].
    pub async fn ping(&self) -> Result<(), Down> {
        self.read(STATEMENT_MAX, async |c| c.simple_query("SELECT 1").await.map(drop)).await
    }

    /// Writes rows, all or none.
    ///
    /// # Errors
    /// [`NotRecorded`].
    pub async fn record(
        &self,
        room: &RoomId,
        generation: u64,
        rows: &[Row],
    ) -> Result<(), NotRecorded> {
        let connection = self.connection().await.map_err(|_| NotRecorded::Refused)?;
        let seqs: Vec<i64> = rows.iter().map(|row| number(row.event.seq)).collect();
        let names: Vec<&str> = rows.iter().map(|row| row.event.fact.name()).collect();
        let bodies: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
        let hashes: Vec<&[u8]> = rows.iter().map(|row| &row.hash[..]).collect();
        let closes = names.last() == Some(&"room_closed");
        let (id, generation) = (room.as_str(), number(generation));
        let values: [&(dyn ToSql + Sync); 7] =
            [&id, &generation, &seqs, &names, &bodies, &hashes, &closes];
        let work = async {
            let insert = connection.prepare_cached(INSERT).await?;
            connection.execute(&insert, &values).await
        };
        match tokio::time::timeout(STATEMENT_MAX, work).await {
            Ok(Ok(_)) => {
                self.health.postgres_answered();
                Ok(())
            }
            Ok(Err(error)) => {
                let fate = fate_of(&error);
                if fate != NotRecorded::Taken {
                    self.health.postgres_failed(&error);
                }
                Err(fate)
            }
            Err(late) => {
                drop(Object::take(connection));
                self.health.postgres_failed(&late);
                Err(NotRecorded::Unknown)
            }
        }
    }

    /// Reads rows after `after` up to `up_to`, at most [`ROWS_MAX`].
    ///
    /// # Errors
    /// [`Down`], also when a row cannot be read: then its place is logged.
    pub async fn rows(
        &self,
        room: &RoomId,
        generation: u64,
        after: (u64, Hash),
        up_to: u64,
    ) -> Result<Vec<Row>, Down> {
        const ROWS: &str = "SELECT body::text FROM qm_journal WHERE room = $1 AND generation = $2 \
            AND seq > $3 AND seq <= $4 ORDER BY seq LIMIT $5";
        let (id, g) = (room.as_str(), number(generation));
        let (from, to) = (number(after.0), number(up_to));
        let limit = STATEMENT_MAX * 5;
        let (rows, voided) = self
            .read(limit, async |c| {
                let (rows, voided) =
                    (c.prepare_cached(ROWS).await?, c.prepare_cached(VOIDED).await?);
                let rows = c.query(&rows, &[&id, &g, &from, &to, &ROWS_MAX]).await?;
                Ok((rows, c.query(&voided, &[&id, &g, &from]).await?))
            })
            .await?;
        let ranges: Vec<(i64, i64, i64)> =
            voided.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
        let mut last = after.1;
        let mut read = Vec::with_capacity(rows.len());
        for row in &rows {
            let event = serde_json::from_str(row.get(0)).map_err(|error| {
                tracing::error!(%room, generation, %error, "a journal row cannot be read");
                Down
            })?;
            let mut row = Row::after(&last, event);
            let seq = number(row.event.seq);
            row.void = ranges.iter().any(|(a, b, at)| seq >= *a && seq <= *b && seq < *at);
            last = row.hash;
            read.push(row);
        }
        Ok(read)
    }

    /// Every generation of every room that has rows.
    ///
    /// # Errors
    /// [`Down`].
    pub async fn generations(&self) -> Result<Vec<(String, u64)>, Down> {
        // One look into the key for each, not a walk over all rows.
        const ALL: &str = "WITH RECURSIVE g AS ((SELECT room, generation FROM qm_journal \
            ORDER BY room, generation LIMIT 1) UNION ALL SELECT n.room, n.generation FROM g, \
            LATERAL (SELECT room, generation FROM qm_journal \
            WHERE (room, generation) > (g.room, g.generation) \
            ORDER BY room, generation LIMIT 1) n) SELECT room, generation FROM g";
        let rows = self.read(STATEMENT_MAX * 15, async |c| c.query(ALL, &[]).await).await?;
        let pair = |row: &tokio_postgres::Row| (row.get(0), row.get::<_, i64>(1).unsigned_abs());
        Ok(rows.iter().map(pair).collect())
    }

    /// Rows as they are stored, after `seq`, at most [`ROWS_MAX`].
    ///
    /// # Errors
    /// [`Down`].
    pub async fn raw_rows(
        &self,
        room: &str,
        generation: u64,
        seq: u64,
    ) -> Result<Vec<RawRow>, Down> {
        const ROWS: &str = "SELECT seq, event, body::text, hash FROM qm_journal WHERE room = $1 \
            AND generation = $2 AND seq > $3 ORDER BY seq LIMIT $4";
        let (generation, seq) = (number(generation), number(seq));
        let rows = self
            .read(STATEMENT_MAX * 15, async |c| {
                let rows = c.prepare_cached(ROWS).await?;
                c.query(&rows, &[&room, &generation, &seq, &ROWS_MAX]).await
            })
            .await?;
        let raw = |row: &tokio_postgres::Row| RawRow {
            seq: row.get::<_, i64>(0).unsigned_abs(),
            event: row.get(1),
            body: row.get(2),
            // A hash of another length fits nothing.
            hash: Hash::try_from(row.get::<_, &[u8]>(3)).unwrap_or_default(),
        };
        Ok(rows.iter().map(raw).collect())
    }

    /// The ranges that rows void, and where those rows stand.
    ///
    /// # Errors
    /// [`Down`].
    pub async fn voided(&self, room: &str, generation: u64) -> Result<Vec<(u64, u64, u64)>, Down> {
        let g = number(generation);
        let rows =
            self.read(STATEMENT_MAX, async |c| c.query(VOIDED, &[&room, &g, &0_i64]).await).await?;
        let at = |row: &tokio_postgres::Row, index| row.get::<_, i64>(index).unsigned_abs();
        Ok(rows.iter().map(|row| (at(row, 0), at(row, 1), at(row, 2))).collect())
    }

    /// Makes a room in the register, with its first row; `None` when it is there already.
    ///
    /// # Errors
    /// [`Down`].
    pub async fn open_room(
        &self,
        room: &RoomId,
        at_least: u64,
        first: impl Fn(u64) -> Row,
    ) -> Result<Option<Row>, Down> {
        const OPEN: &str = "INSERT INTO qm_room AS r (room, generation, open) \
            VALUES ($1, $2, true) \
            ON CONFLICT (room) DO UPDATE SET open = true, ordinal = DEFAULT, \
            generation = GREATEST(r.generation + 1, EXCLUDED.generation) WHERE NOT r.open \
            RETURNING generation";
        let mut connection = self.connection().await?;
        let work = async {
            let change = connection.transaction().await?;
            let made = change.query_opt(OPEN, &[&room.as_str(), &number(at_least)]).await?;
            let Some(made) = made else { return Ok(None) };
            let generation: i64 = made.get(0);
            let row = first(generation.unsigned_abs());
            let name = row.event.fact.name();
            let insert = "INSERT INTO qm_journal (room, generation, seq, event, body, hash) \
                VALUES ($1, $2, 1, $3, ($4::text)::jsonb, $5)";
            let hash = &row.hash[..];
            let values: [&(dyn ToSql + Sync); 5] =
                [&room.as_str(), &generation, &name, &row.text, &hash];
            change.execute(insert, &values).await?;
            change.commit().await?;
            Ok(Some(row))
        };
        match tokio::time::timeout(STATEMENT_MAX, work).await {
            Ok(Ok(row)) => Ok(row),
            Ok(Err(error)) => {
                let error: tokio_postgres::Error = error;
                self.health.postgres_failed(&error);
                Err(Down)
            }
            Err(late) => {
                self.health.postgres_failed(&late);
                Err(Down)
            }
        }
    }

    /// All rooms that ever were, in the order they were made.
    ///
    /// # Errors
    /// [`Down`].
    pub async fn register(&self) -> Result<Vec<Registered>, Down> {
        const ALL: &str = "SELECT room, generation, open FROM qm_room ORDER BY ordinal";
        let rows = self.read(STATEMENT_MAX, async |c| c.query(ALL, &[]).await).await?;
        let registered = rows.iter().filter_map(|row| {
            let (room, generation): (&str, i64) = (row.get(0), row.get(1));
            let room = RoomId::parse(room).ok()?;
            Some(Registered { room, generation: generation.unsigned_abs(), open: row.get(2) })
        });
        Ok(registered.collect())
    }

    /// The room as its newest snapshot has it, else as it was opened; with the hash at its head.
    ///
    /// # Errors
    /// [`Down`].
    pub async fn load(&self, room: &RoomId, generation: u64) -> Result<Option<(Room, Hash)>, Down> {
        const NEWEST: &str = "SELECT state, hash FROM qm_snapshot WHERE room = $1 AND \
            generation = $2 AND format = $3 ORDER BY seq DESC LIMIT 1";
        let (id, g) = (room.as_str(), number(generation));
        let found = self
            .read(STATEMENT_MAX * 15, async |c| {
                c.query_opt(NEWEST, &[&id, &g, &SNAPSHOT_FORMAT]).await
            })
            .await?;
        if let Some(row) = found {
            let (state, hash): (Vec<u8>, Vec<u8>) = (row.get(0), row.get(1));
            let unpacked = tokio::task::spawn_blocking(move || unpack(&state)).await;
            match (unpacked.ok().flatten(), Hash::try_from(hash)) {
                (Some(state), Ok(hash)) => return Ok(Some((state, hash))),
                _ => tracing::error!(%room, generation, "a snapshot cannot be read: replaying"),
            }
        }
        let first = self.rows(room, generation, (0, GENESIS), 1).await?;
        Ok(first.first().and_then(|row| Some((Room::open(&row.event)?, row.hash))))
    }

    /// Keeps a whole state and forgets older ones.
    ///
    /// # Errors
    /// [`Down`].
    pub async fn keep_snapshot(&self, room: Room, hash: Hash) -> Result<(), Down> {
        const KEEP: &str = "INSERT INTO qm_snapshot (room, generation, seq, format, state, hash) \
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
        const FORGET: &str =
            "DELETE FROM qm_snapshot WHERE room = $1 AND (generation, seq) < ($2, $3)";
        let (id, g, seq) = (room.id().clone(), number(room.generation()), number(room.head()));
        let packed = tokio::task::spawn_blocking(move || pack(&room)).await.map_err(|_| Down)?;
        let (state, hash) = (packed.ok_or(Down)?, &hash[..]);
        self.read(STATEMENT_MAX * 15, async |c| {
            let values: [&(dyn ToSql + Sync); 6] =
                [&id.as_str(), &g, &seq, &SNAPSHOT_FORMAT, &state, &hash];
            c.execute(KEEP, &values).await?;
            c.execute(FORGET, &[&id.as_str(), &g, &seq]).await.map(drop)
        })
        .await
    }
}

/// Only what Postgres itself answered, and not while it was stopping, is certain.
fn fate_of(error: &tokio_postgres::Error) -> NotRecorded {
    let Some(code) = error.code() else { return NotRecorded::Unknown };
    if *code == SqlState::UNIQUE_VIOLATION {
        return NotRecorded::Taken;
    }
    let uncertain = ["57", "58", "08", "XX", "40"];
    if uncertain.iter().any(|class| code.code().starts_with(class)) {
        NotRecorded::Unknown
    } else {
        NotRecorded::Refused
    }
}

fn pack(room: &Room) -> Option<Vec<u8>> {
    let octets = postcard::to_allocvec(&room.snapshot()).ok()?;
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&octets).ok()?;
    packed.finish().ok()
}

fn unpack(state: &[u8]) -> Option<Room> {
    let mut octets = Vec::new();
    DeflateDecoder::new(state).read_to_end(&mut octets).ok()?;
    postcard::from_bytes::<Snapshot>(&octets).ok()?.into_room()
}
