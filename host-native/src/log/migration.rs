//! Brings the schema of Postgres up to this version: under a lock, each file once, in order, and
//! never backwards. A database that a newer server wrote is refused.

use std::fmt;

use tokio_postgres::Client;

/// All migrations, by rising number. Files are never changed once released.
const MIGRATIONS: &[(i32, &str)] = &[(1, include_str!("../side/migration/0001_journal.sql"))];

/// The number of the lock under which migrations run: "qm" and a version, as octets.
const LOCK: i64 = 0x716d_0001;

/// Why the schema cannot be brought up.
#[derive(Debug)]
pub enum MigrateError {
    /// The database has a migration that this version does not know.
    Newer(i32),
    /// A recorded migration had another text.
    Changed(i32),
    /// Postgres refused.
    Postgres(tokio_postgres::Error),
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer(number) => {
                write!(f, "the database has schema {number}, newer than this server knows")
            }
            Self::Changed(number) => write!(f, "schema {number} was made from another text"),
            Self::Postgres(error) => write!(f, "postgres: {error}"),
        }
    }
}

impl From<tokio_postgres::Error> for MigrateError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

/// Runs what is missing.
///
/// # Errors
/// [`MigrateError`]; the schema is then as it was.
pub async fn migrate(client: &mut Client) -> Result<(), MigrateError> {
    let change = client.transaction().await?;
    change.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    change
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS qm_schema (number integer PRIMARY KEY, digest text NOT NULL, \
             at timestamptz NOT NULL DEFAULT now())",
        )
        .await?;
    for row in change.query("SELECT number, digest FROM qm_schema ORDER BY number", &[]).await? {
        let (number, digest): (i32, String) = (row.get(0), row.get(1));
        match MIGRATIONS.iter().find(|(known, _)| *known == number) {
            None => return Err(MigrateError::Newer(number)),
            Some((_, text)) if digest_of(text) != digest => {
                return Err(MigrateError::Changed(number));
            }
            Some(_) => {}
        }
    }
    for (number, text) in MIGRATIONS {
        let digest = digest_of(text);
        let insert = "INSERT INTO qm_schema (number, digest) VALUES ($1, $2) \
            ON CONFLICT DO NOTHING";
        if change.execute(insert, &[number, &digest]).await? == 1 {
            change.batch_execute(text).await?;
            tracing::info!(number, "schema migrated");
        }
    }
    change.commit().await?;
    Ok(())
}

fn digest_of(text: &str) -> String {
    qm_core::digest::hex(&super::row::chained(&super::row::GENESIS, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise() {
        assert!(MIGRATIONS.is_sorted_by(|(a, _), (b, _)| a < b));
    }
}
