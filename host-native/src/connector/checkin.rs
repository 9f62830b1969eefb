//! Notes who verified an installation, for the console's list (VER-05). What is noted was chosen by
//! strangers, so it is cut to a sane length; the side store bounds how many there are.

use qm_core::time::TimeMs;

use super::verify::{Inquiry, Site};
use crate::side::Side;
use crate::side::check_in::{Installation, Seen};

/// Notes one verification and how it went. A store that does not answer costs the note, never the
/// verification.
pub async fn note(side: &Side, inquiry: &Inquiry<'_>, ok: bool, at: TimeMs) {
    let seen = Seen { installation: installation(inquiry), ok, at };
    if let Err(error) = side.check_in(seen).await {
        tracing::warn!(?error, "failed to note the verification of an installation");
    }
}

fn installation(inquiry: &Inquiry<'_>) -> Installation {
    let origin = match &inquiry.site {
        Site::Named(origin) => origin.as_str(),
        Site::Unnamed | Site::Unusable => "",
    };
    Installation {
        connector: cut(inquiry.connector.unwrap_or_default()),
        version: cut(inquiry.version.unwrap_or_default()),
        room: inquiry.room.as_str().to_owned(),
        origin: cut(origin),
    }
}

fn cut(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect()
}

const TEXT_CHARS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use qm_core::id::RoomId;

    use super::*;
    use crate::connector::verify::KeyShown;
    use crate::side::MemorySide;

    #[tokio::test]
    async fn an_installation_is_one_entry_and_bounded() {
        let side = Side::Memory(MemorySide::default());
        let room = RoomId::parse("shop").unwrap();
        let long = format!("{}\n", "x".repeat(9999));
        let mut inquiry = Inquiry {
            room: &room,
            site: Site::find(Some("https://shop.example.com"), None, None),
            url: None,
            connector: Some("node"),
            version: Some("1.3.1"),
            key: KeyShown::None,
            server_version: "1.3.0",
            server_is_https: true,
        };
        note(&side, &inquiry, true, TimeMs(1)).await;
        note(&side, &inquiry, false, TimeMs(2)).await;
        inquiry.connector = Some(&long);
        note(&side, &inquiry, true, TimeMs(3)).await;
        let all = side.check_ins().await.unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].installation.connector.len(), TEXT_CHARS_MAX);
        let node = (&*all[1].installation.origin, all[1].ok, all[1].count);
        assert_eq!(node, ("https://shop.example.com", false, 2));
    }
}
