//! Credentials of operators and monitors as they are stored: never the key itself, only what can
//! recognise it.

use qm_core::time::TimeMs;
use qm_core::token::Verifier;

/// What a credential may do, in rising order (AUT-14 to AUT-16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Holds a shared link: sees live numbers.
    Monitor,
    /// Reads everything.
    Viewer,
    /// Runs the rooms.
    Operator,
    /// May do everything.
    Owner,
}

impl Role {
    /// The word in answers and in the audit trail.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Monitor => "monitor",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Owner => "owner",
        }
    }

    /// The role of an operator by its word; nobody is made a monitor that way.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Viewer, Self::Operator, Self::Owner].into_iter().find(|role| role.as_str() == word)
    }
}

/// A named operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// The id in URLs.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it may do; no route changes it (ADM-02).
    pub role: Role,
    /// When it was made.
    pub created_at: TimeMs,
    /// Recognises the key.
    pub verifier: Verifier,
    /// The secrets the key was stored under before.
    pub past_kids: Vec<String>,
}

/// Which credential a request is judged by. Looked up again wherever it is used later, so that a
/// revoked one is dead at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialId {
    /// `ADMIN_KEY`, by the verifier of the key that was right then.
    Admin(Verifier),
    /// A named operator.
    Operator(String),
    /// A monitor link.
    Link(String),
    /// A console session.
    Session(String),
}

/// A console session (AUT-10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleSession {
    /// Its id, the `sid` of the cookie.
    pub id: String,
    /// Who signed in: an operator or `ADMIN_KEY`.
    pub holder: CredentialId,
    /// When it ends.
    pub expires_at: TimeMs,
}

/// A monitor link (ADM-63).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorLink {
    /// Its id, the `mid` of the token.
    pub id: String,
    /// What people call it.
    pub label: String,
    /// When it ends.
    pub expires_at: TimeMs,
}

/// A ticket for the admin stream (AUT-08), stored by its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamTicket {
    /// The digest of the ticket.
    pub digest: String,
    /// The credential that asked for it.
    pub credential: CredentialId,
    /// When it dies.
    pub expires_at: TimeMs,
}
